//! Tests of the places of input and output: no file receives two results, standard output receives
//! nothing except a result for `-`, and unusable places are reported.

use crate::saved::{self, RACE};
use crate::support::{Outcome, Site, allocator, program};

/// Creates a folder with a race, as `r.json`.
fn site() -> Site {
    let site = Site::new();
    site.file("r.json", saved::text(RACE));
    site
}

fn refuse(site: &Site, line: &str, words: &[&str]) {
    let ask: Vec<_> = line.split_whitespace().collect();
    site.run(&ask).complains(2, words);
}

#[test]
fn two_outputs_in_one_file_are_refused_by_every_command() {
    let site = site();
    std::os::unix::fs::symlink("x", site.path("link")).expect("linked");
    site.file("x", "");
    let both = ["--markdown", "--csv", "go to the same place"];
    refuse(&site, "show r.json --markdown x --csv x", &both);
    refuse(&site, "show r.json --markdown ./new --csv new", &both);
    refuse(&site, "show r.json --markdown link --csv x", &both);
    refuse(&site, "race --markdown x --csv x -- true", &both);
    refuse(&site, "suite real --markdown x --csv x", &both);
    refuse(&site, "survive --markdown x --csv x -- true", &both);
    let words = ["--json ./y", "--markdown y"];
    refuse(
        &site,
        "compare r.json r.json --markdown y --json ./y",
        &words,
    );
    let words = ["--data x", "--csv ./x"];
    refuse(&site, "paging throughput --data x --csv ./x", &words);
    refuse(&site, "suite lgalloc --data x --csv ./x", &words);
    let words = ["--resume r.json", "--csv ./r.json"];
    refuse(&site, "suite real --resume r.json --csv ./r.json", &words);
    assert_eq!(site.visible_files(), ["link", "r.json", "x"]);
}

#[test]
fn one_result_goes_to_standard_output_and_the_table_stays_away() {
    let site = site();
    let shown = site.run(&["show", "r.json"]);
    for (option, file) in [("--json", "a"), ("--csv", "b"), ("--markdown", "c")] {
        let piped = site.run(&["show", "r.json", option, "-"]);
        site.run(&["show", "r.json", option, file]).ends_with(0);
        let written = std::fs::read_to_string(site.path(file)).expect("written");
        assert_eq!(piped.ends_with(0).stdout, written, "{option}");
        assert_ne!(written, shown.stdout);
    }
    let both = ["--json -", "--csv -", "same place"];
    refuse(&site, "show r.json --json - --csv -", &both);
    let both = ["--json /dev/stdout", "--csv -", "same place"];
    refuse(&site, "show r.json --csv - --json /dev/stdout", &both);
    let compared = site.run(&["compare", "r.json", "r.json", "--json", "-"]);
    is_json(&compared);
    let page = site.run(&["report", "r.json", "-o", "-"]);
    let page = &page.ends_with(0).stdout;
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
    assert_eq!(site.visible_files(), ["a", "b", "c", "r.json"]);
}

#[track_caller]
fn is_json(outcome: &Outcome) {
    let read: Result<serde_json::Value, _> = serde_json::from_str(&outcome.ends_with(0).stdout);
    assert!(read.is_ok(), "{}", outcome.stdout);
}

#[test]
fn a_race_prints_its_result_alone() {
    let (site, sound) = (Site::new(), allocator(""));
    let sound = sound.to_str().expect("plain");
    let all = ["race", "-a", sound, "--rounds", "1", "--memory-runs", "0"];
    let race = |more: &[&str], argument: &str| {
        let program = program();
        let command = ["--", &program, "work", argument];
        site.run(&[&all[..], more, &command[..]].concat())
    };
    is_json(&race(&["--json", "-"], "20"));
    is_json(&race(&["--sweep", "n=20,30", "--json", "-"], "{n}"));
    assert_eq!(site.visible_files(), [""; 0]);
}

#[test]
fn several_files_need_a_folder() {
    let site = site();
    refuse(&site, "plot r.json -o -", &["--output -", "name a folder"]);
    refuse(&site, "man --dir -", &["--dir -", "name a folder"]);
    assert_eq!(site.visible_files(), ["r.json"]);
}

#[test]
fn a_page_for_a_folder_that_is_not_there() {
    let site = site();
    let outcome = site.run(&["report", "r.json", "-o", "no/page.html"]);
    let words = [
        "cannot write no/page.html",
        "there is no folder no; create it",
    ];
    outcome.complains(4, &words);
}

#[test]
fn one_result_comes_from_standard_input() {
    let site = site();
    let read = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let mut command = site.command(&words);
        let file = std::fs::File::open(site.path("r.json")).expect("it is there");
        command.stdin(file);
        site.finish(command)
    };
    let shown = site.run(&["show", "r.json", "--full"]);
    assert_eq!(read("show - --full").ends_with(0).stdout, shown.stdout);
    let page = read("report - -o -");
    assert!(page.ends_with(0).stdout.contains("standard-input.json"));
    let compared = read("compare - r.json --json -");
    assert!(compared.ends_with(0).stdout.contains("\"standard input\""));
    for line in ["report - - -o p.html", "compare - -"] {
        read(line).complains(2, &["- is given twice"]);
    }
    refuse(&site, "show -", &["standard input is empty"]);
    assert_eq!(site.visible_files(), ["r.json"]);
}

#[test]
fn a_folder_that_cannot_be_made_is_told_as_it_was_named() {
    let site = site();
    let words = [
        "cannot make the folder r.json/p",
        "r.json is not a folder; name a folder in one",
    ];
    site.run(&["plot", "r.json", "-o", "r.json/p"])
        .complains(4, &words);
    site.run(&["man", "--dir", "r.json/p"]).complains(4, &words);
}

#[test]
fn help_that_cannot_be_printed() {
    let site = Site::new();
    let line = "\"$0\" --help >/dev/full";
    let words = ["-c", line, env!("CARGO_BIN_EXE_heapdrome")];
    let outcome = site.finish(site.program("sh", &words));
    outcome.complains(4, &["cannot write to standard output"]);
}
