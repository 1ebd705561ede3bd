//! Tests of `trace check`, which compares a replay with its program. Also tests that races of a
//! trace use the outcome of its check in their verdicts.

use std::path::Path;

use serde_json::Value;

use crate::support::{Outcome, Site, allocator, fidelity_program, row};

/// Memory in MiB that the program requests from malloc.
const HEAP: &str = "24";
/// Memory in MiB that the program maps itself.
const MAPPED: &str = "16";

/// Name of the trace that the tests record.
const TRACE: &str = "app.trace";
/// Name of the file with the outcome of the trace's check.
const KEPT: &str = "app.trace.fidelity.json";

/// Records the program with these arguments.
fn record(site: &Site, arguments: &[&str]) {
    let program = fidelity_program();
    let words = [
        &["record", "--force", "-o", TRACE, "--", &program],
        arguments,
    ]
    .concat();
    site.run(&words).ends_with(0);
}

/// Checks the trace against the program with these arguments.
fn check(site: &Site, arguments: &[&str]) -> Outcome {
    let (program, sound) = (fidelity_program(), allocator(""));
    let sound = sound.to_str().expect("plain");
    let words = [
        "trace", "check", "--quick", "-a", sound, TRACE, "--", &program,
    ];
    site.run(&[&words[..], arguments].concat())
}

fn kept(site: &Site) -> Value {
    let text = std::fs::read_to_string(site.path(KEPT)).expect("the result is kept");
    serde_json::from_str(&text).expect("JSON")
}

/// Returns the verdict of a check on a property.
fn agreement(check: &Value, property: &str) -> String {
    let all = check["fidelity"]["checks"].as_array().expect("comparisons");
    let one = all.iter().find(|one| one["property"] == property);
    let agreement = one.and_then(|one| one["agreement"].as_str());
    agreement.expect("the property is compared").to_owned()
}

/// Races the replay of the trace, and returns the sound allocator's comparison with the baseline in
/// a figure.
fn raced(site: &Site, speed: &str, figure: &str) -> Value {
    let sound = allocator("");
    let options = ["--trace", TRACE, "--speed", speed, "--rounds", "5"];
    let (outcome, result) = site.race(&[&sound], &options, &[]);
    outcome.ends_with(0);
    row(&result, &sound)["versus_baseline"][figure].clone()
}

#[test]
fn a_faithful_replay_passes_and_its_check_is_kept_and_shown() {
    let site = Site::new();
    record(&site, &[HEAP]);
    raced(&site, "paced", "wall_s");
    site.in_full()
        .tells("fidelity not checked: run heapdrome trace check");
    let outcome = check(&site, &[HEAP]);
    assert!([0, 1].contains(&outcome.status), "{}", outcome.stderr);
    let found = kept(&site);
    for property in ["peak-memory", "page-faults"] {
        assert_eq!(agreement(&found, property), "within", "{}", outcome.stdout);
    }
    assert!(outcome.stderr.contains(KEPT), "{}", outcome.stderr);
    let shown = site.run(&["show", KEPT]);
    shown.ends_with(0);
    assert_eq!(shown.stdout, outcome.stdout);
    shown.tells("Conclusion: The replay");
    raced(&site, "paced", "wall_s");
    let full = site.in_full().stdout;
    assert!(!full.contains("not checked"), "{full}");
}

#[test]
fn memory_that_a_program_maps_itself_is_a_miss_beside_each_verdict_on_memory() {
    let site = Site::new();
    record(&site, &[HEAP, MAPPED]);
    let outcome = check(&site, &[HEAP, MAPPED]);
    outcome.says(1, &["the replay misses its program in", "peak memory"]);
    assert_eq!(agreement(&kept(&site), "peak-memory"), "miss");
    outcome.tells("The replay misses its program in peak memory");
    let memory = raced(&site, "paced", "peak_rss_bytes");
    assert!(
        memory["misses"].to_string().contains("peak-memory"),
        "{memory}"
    );
    let full = site.in_full();
    full.tells("but the replay misses peak memory");
    full.tells("The replay misses its program in peak memory (");
    let time = raced(&site, "dependencies", "wall_s");
    assert!(
        !time["misses"].to_string().contains("peak-memory"),
        "{time}"
    );
}

#[test]
fn the_trace_of_another_program_is_a_miss_and_its_check_is_not_used_for_this_trace() {
    let site = Site::new();
    record(&site, &["8"]);
    check(&site, &[HEAP]).says(1, &["peak memory", "page faults"]);
    record(&site, &[HEAP]);
    let memory = raced(&site, "paced", "peak_rss_bytes");
    assert!(memory["misses"].is_null(), "{memory}");
    site.in_full()
        .tells("is the check of another trace, and is ignored");
}

#[test]
fn a_speed_has_no_verdict_on_what_it_does_not_support() {
    let site = Site::new();
    record(&site, &[HEAP]);
    let refused = "not judged at this speed";
    for (speed, figure, is_judged) in [
        ("paced", "wall_s", false),
        ("paced", "peak_rss_bytes", true),
        ("dependencies", "cpu_s", true),
        ("dependencies", "end_resident_bytes", false),
        ("locked", "wall_s", false),
        ("locked", "peak_rss_bytes", false),
    ] {
        let verdict = raced(&site, speed, figure)["verdict"].clone();
        assert_eq!(
            verdict != refused,
            is_judged,
            "{speed}, {figure}: {verdict}"
        );
    }
    site.in_full()
        .tells("No answer: keep system. A replay at speed locked supports no claim.");
    let race = [
        "race", "--trace", TRACE, "--speed", "paced", "--judge", "wall",
    ];
    site.run(&race)
        .complains(2, &["no claim on time", "--speed dependencies"]);
}

#[test]
fn what_cannot_be_checked_is_refused_in_one_line() {
    let site = Site::new();
    record(&site, &["1"]);
    let refused = |words: &[&str], told: &[&str]| {
        let outcome = site.run(&[&["trace", "check"], words].concat());
        outcome.says(2, told);
    };
    refused(&["missing", "--", "true"], &["missing"]);
    refused(&[TRACE, "--", "no-such-command"], &["no-such-command"]);
    refused(&[TRACE], &["COMMAND"]);
    refused(&["--rounds", "4", TRACE, "--", "true"], &["--rounds"]);
    refused(&["--setup", "true", TRACE, "--", "true"], &["--setup"]);
    refused(
        &["--process", "9", TRACE, "--", "true"],
        &["no operations of process 9"],
    );
    site.file(KEPT, "mine");
    refused(&[TRACE, "--", "true"], &[KEPT, "move it away"]);
    let left = std::fs::read_to_string(Path::new(&site.path(KEPT))).expect("it is there");
    assert_eq!(left, "mine");
}
