//! Tests that measurements survive kill -9 and Ctrl-C, and that `--resume` continues the race.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Running, Site, allocator, program};

const ROUNDS: &str = "6";
/// Number of timed runs of the whole race: three entrants, including the baseline's twin.
const RUNS: usize = 18;

/// Starts a race of about a second, so that the caller can wait for some of its rounds.
fn start(site: &Site) -> Running {
    start_with(site, &[])
}

/// Starts a race of about a second with additional options.
fn start_with(site: &Site, options: &[&str]) -> Running {
    let sound = allocator("");
    let mut race = vec!["race", "-a", sound.to_str().expect("plain")];
    race.extend(["--rounds", ROUNDS, "--memory-runs", "0", "--seed", "7"]);
    race.extend(options);
    let (program, folder) = (program(), site.path(""));
    race.extend(["--", &program, "nap", folder.to_str().expect("plain")]);
    site.start(site.command(&race))
}

fn runs_in(journal: &str) -> usize {
    journal
        .lines()
        .filter(|line| line.starts_with("{\"line\":\"run\""))
        .count()
}

/// Waits until this many timed runs are on disk.
fn wait_for_runs(site: &Site, running: &mut Running, runs: usize) {
    let started = Instant::now();
    while runs_in(&site.journal_text()) < runs {
        assert!(
            running.is_running(),
            "the race ended before it could be disturbed"
        );
        assert!(
            started.elapsed() < Duration::from_secs(150),
            "no run came to the disk"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until no process is left of the program that this test started.
fn no_process_left(site: &Site) {
    let wanted = format!("{}\0nap\0{}\0", program(), site.path("").display());
    let is_there = || {
        let processes = std::fs::read_dir("/proc")
            .expect("/proc is there")
            .flatten();
        let mut lines =
            processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
        lines.any(|line| line == wanted.as_bytes())
    };
    let started = Instant::now();
    while is_there() {
        assert!(
            started.elapsed() < Duration::from_secs(120),
            "a measured process was left behind"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the name of the only race.
fn name(site: &Site) -> String {
    let journal = site.journal().expect("a journal");
    let folder = journal.parent().and_then(std::path::Path::file_name);
    let name = folder.expect("a folder").to_str();
    name.expect("plain").to_owned()
}

/// Resumes the only race by the command line `arguments`, and checks that the race ended and kept
/// the runs in `before`, the earlier text of its journal.
#[track_caller]
fn resumes(site: &Site, arguments: &[&str], before: &str) {
    let outcome = site.run(arguments);
    outcome.ends_with(0);
    outcome.tells("6 rounds");
    let after = site.journal_text();
    let whole_lines = &before[..before.rfind('\n').map_or(0, |end| end + 1)];
    assert!(
        after.starts_with(whole_lines),
        "what was on disk stays there"
    );
    assert_eq!(runs_in(&after), RUNS, "each run once");
}

#[test]
fn a_race_goes_on_after_kill_9() {
    let site = Site::new();
    let mut running = start(&site);
    wait_for_runs(&site, &mut running, 4);
    running.signal(libc::SIGKILL);
    running.wait().ends_with(128 + libc::SIGKILL);
    let before = site.journal_text();
    assert!(runs_in(&before) < RUNS, "it was killed before its end");
    no_process_left(&site);
    resumes(&site, &["race", "--resume"], &before);
    site.run(&["race", "--resume"])
        .complains(2, &["no unfinished race"]);
}

#[test]
fn ctrl_c_reports_what_is_there_and_how_to_go_on() {
    let site = Site::new();
    let mut running = start(&site);
    wait_for_runs(&site, &mut running, 4);
    running.signal(libc::SIGINT);
    let outcome = running.wait();
    outcome.says(130, &["--resume"]);
    assert!(
        outcome.stdout.contains("libsound.so"),
        "the table:\n{}",
        outcome.stdout
    );
    no_process_left(&site);
    let before = site.journal_text();
    assert!(runs_in(&before) < RUNS, "it was stopped before its end");
    resumes(&site, &["race", "--resume"], &before);
}

#[test]
fn a_race_is_resumed_from_another_folder() {
    let site = Site::new();
    std::fs::copy(program(), site.path("here")).expect("a copy");
    let sound = allocator("");
    let mut race = vec![
        "race",
        "-a",
        sound.to_str().expect("plain"),
        "--memory-runs",
        "0",
    ];
    race.extend(["--rounds", ROUNDS, "--", "./here", "nap"]);
    let mut running = site.start(site.command(&race));
    wait_for_runs(&site, &mut running, 4);
    running.signal(libc::SIGINT);
    running.wait().ends_with(130);
    let before = site.journal_text();
    let mut elsewhere = site.command(&["race", "--resume", &name(&site)]);
    elsewhere.current_dir("/");
    // Set variables that differ in another terminal.
    for (name, value) in [("SHLVL", "7"), ("OLDPWD", "/usr"), ("PWD", "/"), ("_", "x")] {
        elsewhere.env(name, value);
    }
    elsewhere.env("SSH_TTY", "/dev/pts/99").env("COLUMNS", "77");
    site.finish(elsewhere).ends_with(0);
    let after = site.journal_text();
    let proofs = |text: &str| {
        text.lines()
            .filter(|l| l.starts_with("{\"line\":\"proof\""))
            .count()
    };
    assert_eq!(
        proofs(&after),
        proofs(&before),
        "the proofs hold: nothing changed"
    );
    assert_eq!(runs_in(&after), RUNS);
}

#[test]
fn a_resumed_race_takes_no_new_settings() {
    Site::new()
        .run(&["race", "--resume", "--seed", "9"])
        .complains(2, &["--resume", "--seed", "omit one of them"]);
}

/// Starts a race with these options, and kills it after its rounds have begun.
fn killed(site: &Site, options: &[&str]) {
    let mut running = start_with(site, options);
    wait_for_runs(site, &mut running, 4);
    running.signal(libc::SIGKILL);
    running.wait().ends_with(128 + libc::SIGKILL);
    no_process_left(site);
}

#[test]
fn a_resumed_race_writes_what_was_asked_for_at_first() {
    let site = Site::new();
    killed(&site, &["--json", "first.json", "--csv", "first.csv"]);
    assert_eq!(site.visible_files(), Vec::<String>::new());
    let mut elsewhere = site.command(&["race", "--resume", &name(&site), "--csv"]);
    elsewhere.arg(site.path("second.csv")).current_dir("/");
    site.finish(elsewhere).ends_with(0);
    assert_eq!(site.visible_files(), ["first.json", "second.csv"]);
    let text = std::fs::read_to_string(site.path("first.json")).expect("written");
    let result: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(result["rounds"], 6);
}

#[test]
fn a_file_that_can_no_longer_be_written_is_told_before_the_race_goes_on() {
    let site = Site::new();
    std::fs::create_dir(site.path("results")).expect("a folder");
    killed(&site, &["--json", "results/first.json"]);
    std::fs::remove_dir(site.path("results")).expect("it is empty");
    let before = site.journal_text();
    site.run(&["race", "--resume"])
        .complains(4, &["results/first.json"]);
    assert_eq!(runs_in(&site.journal_text()), runs_in(&before));
    let other = ["race", "--resume", "--json", "first.json"];
    site.run(&other).ends_with(0);
    assert_eq!(site.visible_files(), ["first.json"]);
}

#[test]
fn a_variable_that_changed_meanwhile_is_named() {
    let site = Site::new();
    killed(&site, &[]);
    let mut other = site.command(&["race", "--resume"]);
    other.env("GREETING", "hello").env("SHLVL", "7");
    let outcome = site.finish(other);
    outcome.says(0, &["the environment changed (GREETING)", "proven again"]);
}

#[test]
fn without_a_name_only_what_was_started_here_goes_on() {
    let site = Site::new();
    killed(&site, &[]);
    let (name, before) = (name(&site), site.journal_text());
    let home = std::fs::canonicalize(site.path("")).expect("a folder");
    let home = home.to_str().expect("plain");
    std::fs::create_dir(site.path("elsewhere")).expect("a folder");
    let mut elsewhere = site.command(&["race", "--resume"]);
    elsewhere.current_dir(site.path("elsewhere"));
    let there = format!("{name} in {home}");
    let words = [
        "no unfinished race that was started in this folder",
        &there,
        "--resume NAME",
    ];
    site.finish(elsewhere).complains(2, &words);
    assert_eq!(site.journal_text(), before, "nothing of it went on");

    let outcome = site.run(&["race", "--resume"]);
    let (raced, place) = (program(), format!("in {home}: "));
    let words = [
        "continuing",
        &name,
        &raced[..8],
        &place,
        " of 6 rounds done",
    ];
    outcome.says(0, &words);
    let first = outcome.stderr.lines().next().unwrap_or_default();
    assert!(first.contains(words[0]), "before anything else: {first}");
}
