//! Tests of wrong usage and input. Each leads to one clear line and the right exit status, and to
//! no partial output.

use std::path::Path;

use crate::support::{Site, allocator, program};

/// Checks that a race under a sound allocator fails with this status and a line that contains
/// `words`. `options` precede the command.
#[track_caller]
fn race_complains(options: &[&str], command: &[&str], status: i32, words: &[&str]) {
    let site = Site::new();
    let sound = allocator("");
    let mut arguments = vec!["race", "--rounds", "2"];
    if !options.contains(&"-a") {
        arguments.extend(["-a", sound.to_str().expect("plain")]);
    }
    arguments.extend(options);
    arguments.push("--");
    arguments.extend(command);
    site.run(&arguments).complains(status, words);
    assert_eq!(site.visible_files(), [""; 0], "nothing is written");
}

/// Checks that a race fails if its allocator is a file with these contents, and that the message
/// contains `words`.
#[track_caller]
fn library_complains(content: &[u8], words: &[&str]) {
    let site = Site::new();
    let library = site.file("lib.so", content);
    let library = library.to_str().expect("plain");
    let outcome = site.run(&["race", "-a", library, "--rounds", "2", "--", &program()]);
    outcome.complains(
        2,
        &[&["lib.so", "cannot serve as an allocator"], words].concat(),
    );
}

fn sound_with(place: usize, byte: u8) -> Vec<u8> {
    let mut bytes = std::fs::read(allocator("")).expect("the fixture is there");
    bytes[place] = byte;
    bytes
}

#[test]
fn a_command_that_is_not_there() {
    race_complains(
        &[],
        &["no-such-command"],
        2,
        &["cannot find the command no-such-command"],
    );
    race_complains(&[], &["./no-such-command", "-x"], 2, &["./no-such-command"]);
}

#[test]
fn a_shell_line_as_one_word_is_told_how_to_be_written() {
    race_complains(&[], &["echo a | cat"], 2, &["echo a | cat", "sh -c"]);
}

#[test]
fn an_empty_command() {
    race_complains(&[], &[], 2, &["no command", "heapdrome race -- COMMAND"]);
    race_complains(&[], &[""], 2, &["command"]);
}

#[test]
fn an_unknown_allocator_is_answered_with_the_nearest_names() {
    race_complains(
        &["-a", "mimaloc3"],
        &["true"],
        2,
        &["mimaloc3", "mimalloc3"],
    );
    let site = Site::new();
    site.run(&["exec", "-a", "jemaloc", "--", "true"])
        .complains(2, &["jemaloc", "jemalloc"]);
    site.run(&["allocators", "show", "snmaloc"])
        .complains(2, &["snmaloc", "snmalloc"]);
    site.run(&["allocators", "remove", "nobody"])
        .complains(2, &["nobody"]);
}

#[test]
fn an_empty_name_in_the_list() {
    race_complains(&["-a", "system,,"], &["true"], 2, &["empty"]);
}

#[test]
fn only_the_baseline() {
    race_complains(
        &["-a", "system"],
        &["true"],
        2,
        &["only the baseline", "-a"],
    );
}

#[test]
fn a_library_that_is_not_there() {
    race_complains(
        &["-a", "./nothing.so"],
        &["true"],
        2,
        &["nothing.so", "no such file"],
    );
}

#[test]
fn a_library_that_is_no_shared_object() {
    library_complains(b"just text\n", &["not a shared object"]);
    library_complains(b"", &["empty"]);
    library_complains(b"\x7fELF", &["cut short"]);
    let whole = std::fs::read(program()).expect("the fixture is there");
    library_complains(&whole, &["a program"]);
}

#[test]
fn a_library_for_another_machine() {
    const MACHINE: usize = 18;
    const AARCH64: u8 = 0xb7;
    const CLASS: usize = 4;
    const BITS_32: u8 = 1;
    library_complains(
        &sound_with(MACHINE, AARCH64),
        &["another machine", "aarch64"],
    );
    library_complains(&sound_with(CLASS, BITS_32), &["another machine", "32 bit"]);
}

/// Checks that heapdrome reports an unwritable destination with the reason before it starts
/// anything.
#[track_caller]
fn unwritable(option: &str, path: &str, why: &str) {
    let site = Site::new();
    site.file("in-the-way", "");
    let touch = format!("touch {}", site.path("started").display());
    let sound = allocator("");
    let sound = sound.to_str().expect("plain");
    let arguments = [
        "race",
        "-a",
        sound,
        option,
        path,
        "--rounds",
        "2",
        "--",
        "sh",
        "-c",
        touch.as_str(),
    ];
    let outcome = site.run(&arguments);
    outcome.complains(4, &["cannot write", path, why]);
    assert!(!outcome.stderr.contains(".tmp"), "{}", outcome.stderr);
    assert_eq!(
        site.visible_files(),
        ["in-the-way"],
        "nothing was run or written"
    );
}

#[test]
fn output_that_cannot_be_written() {
    let missing = "there is no folder /no/such/folder; create it";
    unwritable("--json", "/no/such/folder/result.json", missing);
    let missing = "there is no folder no-such-folder; create it";
    unwritable("--csv", "no-such-folder/result.csv", missing);
    let file = "in-the-way is not a folder";
    unwritable("--markdown", "in-the-way/result.md", file);
    unwritable("--json", "/", "it is a folder");
}

#[test]
fn numbers_that_make_no_sense() {
    let wrong: [&[&str]; 9] = [
        &["--rounds", "0"],
        &["--rounds=-1"],
        &["--rounds", "many"],
        &["--min-rounds", "0"],
        &["--precision", "0%"],
        &["--timeout", "0"],
        &["--max-time", "soon"],
        &["--pin", "zero"],
        &["--seed=-5"],
    ];
    let (site, sound) = (Site::new(), allocator(""));
    for options in wrong {
        let mut arguments = vec!["race", "-a", sound.to_str().expect("plain")];
        arguments.extend(options);
        arguments.extend(["--", "true"]);
        let outcome = site.run(&arguments);
        let name = options[0].split('=').next().unwrap_or_default();
        outcome.complains(2, &[name]);
    }
}

#[test]
fn options_that_contradict_each_other() {
    let server = ["--serve", "true", "--ready", "true"];
    let idle = [&server[..], &["--idle", "1s", "--memory-runs", "0"]].concat();
    let wrong: [(&[&str], &str); 10] = [
        (&["--quick"], "--quick and --rounds"),
        (&["--judge", "nosuch"], "--judge nosuch"),
        (&["--unproven", "--allow-different-work"], "--unproven"),
        (&["--max-rounds", "3"], "--max-rounds"),
        (&["--knee", "10%"], "--knee"),
        (&["--work", "same"], "--work"),
        (&idle, "--idle"),
        (&["--idle", "1s"], "--serve"),
        (&["--env", "A=1", "--env", "A=2"], "--env A"),
        (&["--resume", "--unproven"], "--resume"),
    ];
    for (options, word) in wrong {
        race_complains(options, &[&program()], 2, &[word]);
    }
}

#[test]
fn the_command_as_it_is_has_a_name_of_its_own() {
    race_complains(&["-a", "as-is"], &["true"], 2, &["as-is", "automatically"]);
    let options = ["--baseline", "as-is"];
    race_complains(&options, &["true"], 2, &["as-is", "leave out --baseline"]);
    let (site, sound) = (Site::new(), allocator(""));
    let sound = sound.to_str().expect("plain");
    site.run(&["allocators", "add", "as-is", sound])
        .complains(2, &["as-is"]);
}

#[test]
fn processors_that_this_machine_lacks() {
    race_complains(&["--pin", "900"], &["true"], 2, &["900"]);
}

#[test]
fn more_rounds_at_least_than_at_most() {
    let options = ["--min-rounds", "9", "--precision", "1%"];
    race_complains(&options, &["true"], 2, &["--min-rounds 9"]);
}

#[test]
fn files_and_folders_that_are_not_there() {
    race_complains(
        &["--directory", "/no/such"],
        &["true"],
        2,
        &["--directory", "/no/such"],
    );
    race_complains(
        &["--stdin", "/no/such"],
        &["true"],
        2,
        &["--stdin", "/no/such"],
    );
}

#[test]
fn a_preload_by_hand() {
    let site = Site::new();
    let arguments = [
        "race",
        "-a",
        "system",
        "--env",
        "LD_PRELOAD=x.so",
        "--",
        "true",
    ];
    site.run(&arguments).says(2, &["LD_PRELOAD", "-a PATH"]);
}

#[test]
fn metrics_that_cannot_be_read() {
    let site = Site::new();
    for metric in ["name", "=1", "name:up=1", "name=("] {
        let outcome = site.run(&["race", "-a", "system", "--metric", metric, "--", "true"]);
        outcome.complains(2, &["--metric"]);
    }
    let twice = ["--metric", "a=1", "--metric", "a=2"];
    race_complains(&twice, &["true"], 2, &["--metric a", "twice"]);
}

#[test]
fn an_unknown_workload_is_answered_with_the_nearest_name() {
    let site = Site::new();
    site.run(&["race", "-w", "biuld"])
        .complains(2, &["biuld", "did you mean build?"]);
}

#[test]
fn a_command_to_exec_that_is_not_there() {
    let site = Site::new();
    let sound = allocator("");
    let sound = sound.to_str().expect("plain");
    site.run(&["exec", "-a", sound, "--", "no-such-command"])
        .complains(2, &["no-such-command"]);
    assert!(!Path::new("no-such-command").exists());
}

#[test]
fn a_metric_that_takes_the_name_of_a_figure() {
    race_complains(
        &["--metric", "wall_s=(1)"],
        &[&program()],
        2,
        &["wall_s", "another"],
    );
}

#[test]
fn a_command_that_is_there_and_cannot_be_run() {
    let here = std::env::current_dir().expect("a folder");
    let folder = here.to_str().expect("plain");
    race_complains(&[], &[folder], 2, &["it is a folder"]);
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    race_complains(&[], &[file], 2, &["chmod +x"]);
}

#[test]
fn an_exit_status_that_no_program_has() {
    race_complains(&["--success", "256"], &["true"], 2, &["256"]);
}
