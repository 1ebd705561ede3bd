//! Tests of `heapdrome suite misuse`, with allocators that react to misuse as the test requires.

use std::path::Path;

use serde_json::Value;

use crate::support::{Outcome, Site, misused};

fn misuse(site: &Site, allocator: &Path, options: &[&str]) -> (Outcome, Value) {
    let name = allocator.to_str().expect("a plain path");
    let mut all = vec!["suite", "misuse", "-a", name, "--json", "r.json"];
    all.extend(options);
    let outcome = site.run(&all);
    let text = std::fs::read_to_string(site.path("r.json")).unwrap_or_default();
    (outcome, serde_json::from_str(&text).unwrap_or(Value::Null))
}

/// Returns the outcome, the stage and the message of a kind of misuse.
fn of<'a>(result: &'a Value, kind: &str) -> [&'a str; 3] {
    let runs = result["misuse"].as_array().expect("runs");
    let run = runs.iter().find(|run| run["kind"] == kind);
    let run = run.unwrap_or_else(|| panic!("no {kind} in {runs:?}"));
    ["outcome", "stage", "said"].map(|field| run[field].as_str().unwrap_or_default())
}

const ONLY: [&str; 2] = ["--only", "twice,interior,stack,over-full,read,delete-twice"];

#[test]
fn what_an_allocator_does_not_see_is_told_by_its_harm() {
    let site = Site::new();
    let (outcome, result) = misuse(&site, &misused(""), &ONLY);
    outcome.ends_with(0);
    for kind in ["twice", "interior", "stack", "delete-twice"] {
        assert_eq!(of(&result, kind), ["unharmed", "exit", ""], "{kind}");
    }
    assert_eq!(of(&result, "over-full")[0], "harmed");
    assert_eq!(of(&result, "read")[0], "harmed");
    outcome.tells("detected  killed  no harm seen  harm");
    assert!(
        result["tables"][0]["rows"][0]
            .to_string()
            .contains(r#""0","0","4","2","0","0","6""#)
    );
    let shown = site.run(&["show", "r.json"]);
    assert_eq!(shown.ends_with(0).stdout, outcome.stdout);
}

#[test]
fn messages_signals_and_hangs_are_told_apart() {
    let site = Site::new();
    let said = "misused: this is no live block";
    for (fault, kind, expected) in [
        ("aborts", "twice", ["detected", "misuse", said]),
        ("aborts", "stack", ["detected", "misuse", said]),
        ("aborts", "delete-twice", ["detected", "misuse", said]),
        ("warns", "interior", ["warned", "misuse", said]),
        ("dies", "twice", ["killed", "misuse", ""]),
        ("hangs", "twice", ["hung", "misuse", ""]),
    ] {
        let (outcome, result) = misuse(&site, &misused(fault), &["--only", kind]);
        outcome.ends_with(0);
        assert_eq!(of(&result, kind), expected, "{fault}");
    }
    let (outcome, result) = misuse(&site, &misused("broken"), &ONLY);
    outcome.says(1, &["no allocator could be tested"]);
    let reason = result["absent"][0]["reason"].to_string();
    assert!(reason.contains("without any misuse"), "{reason}");
}

#[test]
fn the_programs_know_every_kind() {
    let site = Site::new();
    let (outcome, result) = misuse(&site, Path::new("system"), &["--markdown", "r.md"]);
    outcome.ends_with(0);
    let runs = result["misuse"].as_array().expect("runs");
    assert!(runs.len() > 50, "{}", runs.len());
    let lost: Vec<_> = runs
        .iter()
        .filter(|run| run["outcome"] == "not-tried")
        .collect();
    assert!(lost.is_empty(), "{lost:?}");
    let markdown = std::fs::read_to_string(site.path("r.md")).expect("written");
    assert!(markdown.contains("### double free") && !markdown.contains("## Races"));
    for line in outcome
        .stdout
        .lines()
        .take_while(|line| !line.starts_with("Machine"))
    {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

#[test]
fn mistakes_are_told_in_one_line() {
    let site = Site::new();
    let all = |options: &[&str]| {
        let mut words = vec!["suite", "misuse"];
        words.extend(options);
        site.run(&words)
    };
    all(&["--published"]).complains(2, &["suite misuse has no --published"]);
    all(&["--rounds", "3"]).complains(2, &["suite misuse has no --rounds"]);
    all(&["--only", "thrice"]).complains(2, &["--only thrice", "twice"]);
    all(&["-a", "no-such-allocator"]).says(2, &["no such allocator: no-such-allocator"]);
    site.run(&["suite", "misue"])
        .complains(2, &["did you mean misuse?"]);
}
