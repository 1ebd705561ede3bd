//! Tests of the end of a race: at a limit of rounds, which a later command can raise, and at
//! `--max-time`. Also tests the expected time left that heapdrome prints.
//!
//! In the test of that limit, the command prints the judged figure, so that no measured time
//! decides a comparison. The baseline prints 1, and a rival prints as its settings say.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Outcome, Site, allocator, program};

/// Command that prints `FIGURE`, or 1 if it is not set. If `FIGURE` is `open`, it alternates
/// between 0.5 and 2, so that nothing is ever decided.
const COMMAND: &str = r#"
figure=${FIGURE:-1}
if [ "$figure" = open ]; then
    if [ -e twice ]; then rm twice; figure=2; else : > twice; figure=0.5; fi
fi
echo "figure $figure"
"#;

const METRIC: [&str; 4] = ["--metric", "figure=figure ([.0-9]+)", "--judge", "figure"];

/// Creates a site with rivals of these names, each with its value of `FIGURE`.
fn site(rivals: &[(&str, &str)]) -> Site {
    let site = Site::new();
    for (name, figure) in rivals {
        let copy = site.path(&format!("{name}.so"));
        std::fs::copy(allocator(""), &copy).expect("a copy");
        let setting = format!("FIGURE={figure}");
        let path = copy.to_str().expect("plain");
        site.run(&["allocators", "add", name, path, "--env", &setting])
            .ends_with(0);
    }
    site
}

/// Races these rivals, and returns the outcome and the result.
fn race(site: &Site, rivals: &str, options: &[&str]) -> (Outcome, Value) {
    let mut words = vec![
        "race",
        "-a",
        rivals,
        "--memory-runs",
        "0",
        "--json",
        "r.json",
    ];
    words.extend(METRIC);
    words.extend(options);
    words.extend(["--", "sh", "-c", COMMAND]);
    let outcome = site.run(&words);
    (outcome, result(site))
}

fn result(site: &Site) -> Value {
    let text = std::fs::read_to_string(site.path("r.json")).expect("a result");
    serde_json::from_str(&text).expect("JSON")
}

/// Returns the number of rounds of each entrant, and the round in which it was decided; the
/// baseline and its twin first.
fn rounds(result: &Value) -> Vec<[Value; 2]> {
    let rows = result["entrants"].as_array().expect("rows");
    let told = |row: &Value| {
        let runs = row["wall_s"]["samples"].as_array().map(Vec::len);
        assert_eq!(row["status"], "ok", "{row}");
        [json!(runs), row["decided_after"].clone()]
    };
    rows.iter().map(told).collect()
}

fn whole(rounds: u32) -> [Value; 2] {
    [json!(rounds), Value::Null]
}

#[test]
fn a_race_that_has_ended_goes_on_until_new_limits() {
    let site = site(&[("open", "open")]);
    let (outcome, first) = race(&site, "open", &["--max-rounds", "5"]);
    outcome.ends_with(0);
    assert_eq!(first["rounds"], 5);
    let again = ["race", "--resume", "--max-rounds", "8", "--json", "r.json"];
    site.run(&again).ends_with(0);
    let second = result(&site);
    assert_eq!(rounds(&second), vec![whole(8); 3]);
    assert_eq!(second["ended"], "8 rounds done");
    let samples = |result: &Value| result["entrants"][2]["wall_s"]["samples"].clone();
    let (before, after) = (samples(&first), samples(&second));
    let before = before.as_array().expect("samples");
    assert!(after.as_array().expect("samples").starts_with(before));
    // Without new limits an ended race does not continue.
    site.run(&["race", "--resume"])
        .complains(2, &["no unfinished race"]);
}

#[test]
fn no_round_begins_when_max_time_is_used_up() {
    let site = site(&[("worse", "2")]);
    let mut words = vec!["race", "-a", "worse", "--max-time", "1ms"];
    words.extend(["--", "sh", "-c", COMMAND]);
    site.run(&words)
        .says(1, &["--max-time was used up before the first round", "-a"]);
}

#[test]
fn the_expected_time_left_rests_on_a_run_that_nothing_traces() {
    let (site, sound) = (Site::new(), allocator(""));
    let traced = "grep -q 'TracerPid:.0$' /proc/self/status || sleep 0.5";
    let (outcome, _) = site.race(&[&sound], &["--memory-runs", "0"], &["sh", "-c", traced]);
    outcome.ends_with(0);
    let told = outcome.stderr.lines().find_map(|line| {
        let (_, run) = line.split_once("runs a round, about ")?;
        let (run, _) = run.split_once(" each")?;
        humantime::parse_duration(run).ok()
    });
    let told = told.unwrap_or_else(|| panic!("no expected time left in:\n{}", outcome.stderr));
    assert!(told < Duration::from_millis(500), "{told:?}");
}

#[test]
fn max_time_limits_all_that_follows_the_builds() {
    let (site, sound) = (Site::new(), allocator(""));
    let began = Instant::now();
    let command = ["sh", "-c", &format!("sleep 0.05; {}", program())];
    // Without the limit, the rounds and the memory runs would each take at least 15 s.
    let limits = [
        "--max-time",
        "6s",
        "--max-rounds",
        "150",
        "--memory-runs",
        "150",
    ];
    let (outcome, _) = site.race(&[&sound], &limits, &command);
    outcome.says(
        0,
        &["--max-time was used up before every memory run was made"],
    );
    let took = began.elapsed();
    assert!(took < Duration::from_secs(16), "{took:?}");
}
