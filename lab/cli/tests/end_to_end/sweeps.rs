//! Tests of sweeps over numbers of threads, placeholders in a command, and environment variables.
//! Also tests the continuation of interrupted sweeps.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Outcome, Running, Site, allocator, row};

/// Load of a few milliseconds.
const TINY: [&str; 4] = ["quick-16-1000", "loops=2", "blocks=200", "ops=20"];

/// Sweeps a small load, and returns the outcome and the result.
fn sweep(site: &Site, values: &str, options: &[&str]) -> (Outcome, Value) {
    let mut all = vec!["-w", "rptest", "-t", values, "--memory-runs", "0"];
    all.extend(options);
    site.race(&[&allocator("")], &all, &TINY)
}

#[test]
fn a_sweep_is_a_collection_of_races() {
    let site = Site::new();
    let options = ["--rounds", "5", "--csv", "s.csv", "--markdown", "t.md"];
    let (outcome, collection) = sweep(&site, "1,2", &options);
    outcome.ends_with(0);
    assert_eq!(collection["name"], "sweep threads");
    let races = collection["races"].as_array().expect("races");
    assert_eq!(races.len(), 2);
    for (race, threads) in races.iter().zip([1, 2]) {
        assert_eq!(race["swept"], threads);
        assert_eq!(race["cell"], format!("threads={threads}"));
        let words = race["parameters"].as_array().expect("words");
        assert!(words.contains(&Value::from(format!("threads={threads}"))));
        assert_eq!(race["result"]["options"]["pin"], race["processors"]);
        let sound = row(&race["result"], &allocator(""));
        assert!(sound["versus_baseline"]["overhead"]["low"].is_number());
    }
    assert_eq!(races[0]["processors"].as_array().map(Vec::len), Some(1));
    outcome.tells("Operations per CPU second");
    outcome.tells("work: the operations of the workload");
    let curves = collection["sweep"]["curves"].as_array().expect("curves");
    let point = &curves[1]["points"][1];
    let twice = point["work"].as_f64().expect("a ratio of work");
    assert!(
        (twice - 2.0).abs() < 1e-6,
        "two threads do twice the work: {twice}"
    );
    assert!(point["degradation"]["low"].is_number(), "{point}");
    for line in outcome
        .stdout
        .lines()
        .filter(|line| line.contains("threads=1"))
    {
        assert!(line.chars().count() <= 100, "too long: {line}");
    }
    let shown = site.run(&["show", "result.json"]);
    assert_eq!(shown.ends_with(0).stdout, outcome.stdout);
    let read = |name: &str| std::fs::read_to_string(site.path(name)).expect("written");
    assert!(read("s.csv").starts_with("cell,swept,allocator,"));
    assert!(read("t.md").contains("threads=2"));
}

#[test]
fn a_proof_holds_for_every_cell_with_the_same_program() {
    let site = Site::new();
    let (outcome, collection) = sweep(&site, "1,2", &["--rounds", "1"]);
    outcome.ends_with(0);
    let proof = |place: usize| {
        let result = &collection["races"][place]["result"];
        row(result, &allocator(""))["proof"].clone()
    };
    assert_eq!(proof(0)["taken_in"], Value::Null);
    assert_eq!(proof(1)["taken_in"], "threads=1");
    assert_eq!(proof(0)["calls"], proof(1)["calls"]);
    outcome.tells("the proof and its counts come from threads=1");
}

#[test]
fn placeholders_and_variables_are_swept_in_every_combination() {
    let site = Site::new();
    let program = site.file(
        "say",
        "#!/bin/sh\necho did $1 items of $SIZE\nexec \"$2\" work \"$3\"\n",
    );
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).expect("it can be made executable");
    let program = program.to_str().expect("plain");
    let swept = ["--sweep", "items=10,20", "--sweep", "env:SIZE=small,large"];
    let others = ["--work", "did ([0-9]+) items", "--rounds", "5"];
    let options = [&swept[..], &others, &["--memory-runs", "0"]].concat();
    let fixture = crate::support::program();
    let command = [program, "{items}", &fixture, "20"];
    let (outcome, collection) = site.race(&[&allocator("")], &options, &command);
    outcome.ends_with(0);
    assert_eq!(collection["name"], "sweep items and env:SIZE");
    let races = collection["races"].as_array().expect("races");
    let cells: Vec<_> = races.iter().map(|race| race["cell"].as_str()).collect();
    assert_eq!(cells.len(), 4);
    assert_eq!(cells[2], Some("items=20 env:SIZE=small"));
    assert_eq!(races[2]["result"]["command"][1], "20");
    assert_eq!(
        races[2]["result"]["options"]["environment"]["SIZE"],
        "small"
    );
    let curves = collection["sweep"]["curves"].as_array().expect("curves");
    assert_eq!(curves.len(), 4, "two allocators, two sizes");
    assert_eq!(curves[0]["others"], "env:SIZE=small");
    assert_eq!(curves[0]["points"][1]["work"], 2.0);
    outcome.tells("work: what the command printed");
    let shown = site.run(&["show", "result.json"]);
    assert_eq!(shown.ends_with(0).stdout, outcome.stdout);
    let plots = ["plot", "result.json", "-o", "plots", "--format", "svg"];
    let drawn = site.run(&[&plots[..], &["--only", "degradation"]].concat());
    let files = drawn.ends_with(0).stdout.lines().count();
    assert_eq!(files, 2, "{}", drawn.stdout);
}

#[test]
fn a_sweep_that_cannot_be_is_one_line() {
    let site = Site::new();
    let refused = |words: &[&str], told: &[&str]| {
        let all = [&["race", "-a", "nothing"], words, &["--", "true", "{n}"]].concat();
        site.run(&all).complains(2, told);
    };
    refused(&["--sweep", "m=1,2"], &["no {m}", "env:m"]);
    refused(&["--sweep", "n=1,1"], &["given twice"]);
    refused(&["-t", "1,2"], &["no {threads}"]);
    refused(&["--sweep", "n"], &["NAME=VALUE"]);
    refused(
        &["--sweep", "n=a,b", "--work", "value"],
        &["must all be numbers"],
    );
    refused(
        &["--sweep", "n=1,2", "--work", "("],
        &["regular expression"],
    );
    refused(
        &["--sweep", "n=1,2", "--pin", "0", "-t", "1,2"],
        &["--pin cannot be combined with --threads", "omit one"],
    );
    assert_eq!(site.visible_files(), Vec::<String>::new());
}

#[test]
fn a_command_that_never_allocates_says_so_in_a_sweep_as_in_a_race() {
    let site = Site::new();
    let program = crate::support::program();
    let why = "the command never allocates, so there is nothing to race";
    let (outcome, _) = site.race(&[&allocator("")], &[], &[&program, "idle", "1"]);
    outcome.complains(1, &[why]);
    let options = ["--sweep", "n=1,2"];
    let (outcome, collection) = site.race(&[&allocator("")], &options, &[&program, "idle", "{n}"]);
    outcome.says(1, &[why, "(n=1, n=2)"]);
    assert!(
        !outcome.stderr.contains("not in the race"),
        "{}",
        outcome.stderr
    );
    outcome.tells(&format!("{why} (n=1, n=2)"));
    outcome.tells(&format!("No verdict on 2 races: {why}."));
    assert!(
        !outcome.stdout.contains("ratio to"),
        "no tables without figures:\n{}",
        outcome.stdout
    );
    let told = collection["remarks"][0].as_str().unwrap_or_default();
    assert!(told.starts_with(why), "{told}");
}

#[test]
fn a_placeholder_without_values_is_pointed_out_and_passed_on() {
    let site = Site::new();
    let program = crate::support::program();
    let (outcome, result) = site.race(
        &[&allocator("")],
        &["--memory-runs", "0"],
        &[&program, "work", "20", "{items}"],
    );
    outcome.says(0, &["{items}", "--sweep items=1,2"]);
    assert_eq!(outcome.stderr.matches("{items}").count(), 1);
    assert_eq!(result["command"][3], "{items}");
    let options = ["--sweep", "item=20,30", "--memory-runs", "0"];
    let command = [&program, "work", "{item}", "{items}"];
    let (outcome, _) = site.race(&[&allocator("")], &options, &command);
    outcome.says(0, &["{items}", "did you mean item?"]);
}

#[test]
fn one_value_is_a_race() {
    let site = Site::new();
    let (outcome, result) = sweep(&site, "1", &["--rounds", "1"]);
    outcome.ends_with(0);
    assert_eq!(result["rounds"], 1);
    assert_eq!(result["options"]["pin"].as_array().map(Vec::len), Some(1));
}

/// Sends the signal to heapdrome once the condition holds, and waits for heapdrome's end.
fn disturbed(mut running: Running, signal: i32, is_time: impl Fn(&Running) -> bool) -> Outcome {
    let started = Instant::now();
    while !is_time(&running) {
        assert!(running.is_running(), "it ended before it was disturbed");
        assert!(
            started.elapsed() < Duration::from_secs(150),
            "the time never came"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    running.signal(signal);
    running.wait()
}

/// Returns the result that a sweep wrote.
fn result(site: &Site) -> Value {
    let text = std::fs::read_to_string(site.path("result.json")).expect("written");
    serde_json::from_str(&text).expect("JSON")
}

/// Ends a sweep of two races with eight rounds each by this signal, once this number of runs is on
/// disk. Then continues it from another folder, and checks that it ends like an uninterrupted
/// sweep.
fn goes_on(options: &[&str], signal: i32, runs: usize) -> (Outcome, Value) {
    let site = Site::new();
    let (sound, program) = (allocator(""), crate::support::program());
    let mut words = vec!["race", "-a", sound.to_str().expect("plain")];
    words.extend(["--sweep", "n=1,2", "--rounds", "8", "--memory-runs", "0"]);
    words.extend(["--seed", "7", "--json", "result.json"]);
    words.extend(options);
    words.extend(["--", &program, "nap", "{n}"]);
    let running = site.start(site.command(&words));
    let on_disk = || runs_on_disk(&site).iter().sum::<usize>();
    let outcome = disturbed(running, signal, |_| on_disk() >= runs);
    assert!(on_disk() < 48, "it was disturbed before its end");
    let name = name_on_disk(&site);
    if signal == libc::SIGINT {
        let told = format!("heapdrome race --resume {name}\n");
        assert!(outcome.stderr.contains(&told), "{}", outcome.stderr);
    }
    let mut again = site.command(&["race", "--resume", &name, "--csv"]);
    again.arg(site.path("result.csv")).current_dir("/");
    let going_on = format!("continuing {name} (program, sweep n), begun ");
    site.finish(again)
        .says(0, &[&going_on, " of 2 races ended, ", " of 16 rounds done"]);
    assert_eq!(site.visible_files(), ["result.csv", "result.json"]);
    // Each race has eight runs of three entrants, including the baseline's twin.
    assert_eq!(runs_on_disk(&site), [24, 24], "each run once");
    let collection = result(&site);
    let races = collection["races"].as_array().expect("races");
    let rounds = |race: &Value| format!("{}: {}", race["cell"], race["result"]["rounds"]);
    let rounds: Vec<_> = races.iter().map(rounds).collect();
    assert_eq!(rounds, ["\"n=1\": 8", "\"n=2\": 8"]);
    let remarks = collection["remarks"].to_string();
    assert!(
        !remarks.contains("interrupted") && !remarks.contains("not raced"),
        "{remarks}"
    );
    let asked = collection["asked"].as_array().map(Vec::len);
    assert_eq!(asked, Some(words.len()), "as at first");
    site.run(&["race", "--resume"])
        .complains(2, &["no unfinished race"]);
    (outcome, collection)
}

#[test]
fn a_sweep_that_was_interrupted_goes_on_as_one() {
    let (outcome, collection) = goes_on(&[], libc::SIGINT, 10);
    outcome.says(130, &["the completed part is reported; continue with"]);
    assert_eq!(collection["sweep"]["paired"], true);
}

#[test]
fn a_sweep_that_was_killed_in_its_second_race_goes_on_as_one() {
    let (outcome, collection) = goes_on(&["--setup", "true"], libc::SIGKILL, 27);
    outcome.ends_with(128 + libc::SIGKILL);
    assert_eq!(collection["sweep"]["paired"], Value::Null);
}

/// Returns the journal of each race.
fn journals(site: &Site) -> impl Iterator<Item = String> {
    let races = std::fs::read_dir(site.path(".local/state/heapdrome/races"));
    let races = races.into_iter().flatten().flatten();
    races.flat_map(|race| std::fs::read_to_string(race.path().join("journal.jsonl")))
}

/// Returns the number of timed runs in the journal of each race.
fn runs_on_disk(site: &Site) -> Vec<usize> {
    let runs = |text: String| text.matches("{\"line\":\"run\"").count();
    journals(site).map(runs).collect()
}

/// Returns the name of the sweep, which is stored in the journals of its races.
fn name_on_disk(site: &Site) -> String {
    let journal = journals(site).next().expect("a race has begun");
    let (_, rest) = journal.split_once("\"of\":\"").expect("a part of a sweep");
    rest.split('"').next().unwrap_or_default().to_owned()
}
