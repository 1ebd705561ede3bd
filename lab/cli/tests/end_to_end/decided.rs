//! Tests of suites in which an entrant stops once every target on it is decided.
//!
//! The targets concern a figure that is equal under every allocator, so that no test depends on
//! time. Its ratios are 1. A target below 2 is therefore decided, and a target below 1 never is.

use std::path::Path;

use serde_json::{Value, json};

use crate::suites::{collection, quick};
use crate::support::{Outcome, Site, allocator};

/// Remark on allocators that left the race before its end.
const LEFT_EARLY: &str = "decided early, so not raced to the end: ";

/// Creates a suite of the system allocator and three others, with two races. In the race `open`,
/// the minimum of five rounds decides the target on `second`, and the target on `third` is never
/// decided. In the race `clear`, five rounds decide the only target.
fn suite(site: &Site) -> String {
    let copies = ["second.so", "third.so"].map(|name| {
        let copy = site.path(name);
        std::fs::copy(allocator(""), &copy).expect("a copy");
        copy.display().to_string()
    });
    let entrant = |name: &str, allocator: &str| {
        format!("[[entrant]]\nname = \"{name}\"\nallocator = \"{allocator}\"\n")
    };
    let cell = |name: &str, racers: &str| {
        format!(
            "[[cell]]\nname = \"{name}\"\ntitle = \"a tiny load\"\nworkload = \"rptest\"\n\
             entrants = [{racers}]\nwords = [\"threads=1\", \"blocks=200\", \"ops=20\"]\ncounts = {{ loops = 1 }}\n\
             quick = {{ words = [\"loops=2\"], rounds = 5, most_rounds = 7 }}\n"
        )
    };
    let target = |to: &str, cells: &str, high: &str| {
        format!(
            "[[target]]\nclaim = \"first takes less than {high} of {to}.\"\nsource = \"mine\"\n\
             test = {{ ratio = {{ figure = \"peak_requested_bytes\", of = [\"first\"], to = [\"{to}\"], \
             in = {{ cells = [{cells}], family = \"race\" }}, range = {{ high = {high} }} }} }}\n"
        )
    };
    let text = [
        "name = \"mine\"\ntitle = \"Mine\"\nsummary = \"A test.\"\nbaseline = \"system\"\n"
            .to_owned(),
        entrant("libc", "system"),
        entrant("first", &allocator("").display().to_string()),
        entrant("second", &copies[0]),
        entrant("third", &copies[1]),
        cell("open", ""),
        cell("clear", "\"libc\", \"first\", \"second\""),
        target("second", "\"open\", \"clear\"", "2.0"),
        target("third", "\"open\"", "1.0"),
    ];
    site.file("mine.toml", text.concat());
    "./mine.toml".to_owned()
}

fn run(site: &Site, options: &[&str]) -> Outcome {
    quick(site, &suite(site), options)
}

/// Returns the number of rounds of each entrant of a race, and the round in which it was decided.
fn rounds(result: &Value) -> Vec<[Value; 2]> {
    let rows = result["entrants"].as_array().expect("rows");
    let told = |row: &Value| {
        let runs = row["wall_s"]["samples"].as_array().map(Vec::len);
        assert_eq!(row["status"], "ok", "{row}");
        [json!(runs), row["decided_after"].clone()]
    };
    rows.iter().map(told).collect()
}

/// Returns the expected rounds of the race `open` for the baseline, its twin, `first`, `second` and
/// `third`. No target compares the baseline or its twin, so they stop with `second`.
fn expected() -> Vec<[Value; 2]> {
    let whole = || [json!(7), Value::Null];
    let short = || [json!(5), json!(5)];
    vec![short(), short(), whole(), short(), whole()]
}

#[test]
fn who_is_decided_runs_no_more_also_when_the_race_is_resumed() {
    let site = Site::new();
    let words = ["--json", "r.json", "--markdown", "r.md", "--csv", "r.csv"];
    let outcome = run(&site, &words);
    outcome.ends_with(0);
    let line = "decided after 5 rounds, no further rounds: system, system (again), ";
    assert!(outcome.stderr.contains(line), "{}", outcome.stderr);
    let found = collection(&site, "r.json");
    let result = &found["races"][0]["result"];
    assert_eq!(rounds(result), expected());
    assert_eq!([&result["rounds"], &result["least_rounds"]], [7, 5]);
    assert_eq!(result["ended"], "7 rounds done");
    let remarks = result["remarks"].to_string();
    assert!(
        remarks.contains(LEFT_EARLY) && remarks.contains(" after 5"),
        "{remarks}"
    );
    let versus = |place: usize| &result["entrants"][place]["versus_baseline"]["wall_s"]["rounds"];
    assert_eq!([1, 2, 3, 4].map(versus), [5; 4]);
    let other = &found["races"][1]["result"];
    assert_eq!(other["rounds"], 5);
    assert_eq!(
        other["ended"],
        "every target of the race was decided after 5 rounds"
    );
    let verdicts: Vec<&Value> = found["claims"]
        .as_array()
        .expect("targets")
        .iter()
        .map(|claim| &claim["holds"])
        .collect();
    assert_eq!(verdicts, ["held", "undecided"]);
    let markdown = std::fs::read_to_string(site.path("r.md")).expect("written");
    assert!(markdown.contains("| 5 to 7 |"), "{markdown}");
    site.run(&["report", "r.json", "-o", "r.html"]).ends_with(0);
    let page = std::fs::read_to_string(site.path("r.html")).expect("a page");
    assert!(page.contains(LEFT_EARLY));
    let shown = site.run(&["show", "r.json"]);
    assert_eq!(shown.ends_with(0).stdout, outcome.stdout);
    site.run(&["compare", "r.json", "r.json"]).ends_with(0);
    goes_on(&site);
}

/// Resumes the race in which one allocator was decided, after removing the end of its journal as if
/// heapdrome had been killed there. The race must end as before.
fn goes_on(site: &Site) {
    let races = site.path(".local/state/heapdrome/races");
    let folders = std::fs::read_dir(races).expect("races").flatten();
    let decided = "\"line\":\"decided\"";
    let text = |folder: &Path| {
        let journal = std::fs::read_to_string(folder.join("journal.jsonl"));
        journal.expect("a journal")
    };
    let mut folders = folders.map(|folder| folder.path());
    let folder = folders.find(|folder| text(folder).contains("7 rounds done"));
    let folder = folder.expect("the race");
    let journal = text(&folder);
    let lines: Vec<&str> = journal.split_inclusive('\n').collect();
    let last = lines.iter().rposition(|line| line.contains(decided));
    // Keep the lines up to the last decision, and one run of the next round.
    let kept = last.expect("decisions") + 2;
    std::fs::write(folder.join("journal.jsonl"), lines[..kept].concat()).expect("written");
    let name = folder.file_name().expect("a name").to_string_lossy();
    let outcome = site.run(&["race", "--resume", &name, "--json", "again.json"]);
    outcome.ends_with(0);
    assert!(
        outcome.stderr.contains("5 of at most 7 rounds done"),
        "{}",
        outcome.stderr
    );
    let result = collection(site, "again.json");
    assert_eq!(rounds(&result), expected());
    assert_eq!([&result["rounds"], &result["least_rounds"]], [7, 5]);
    outcome.tells(LEFT_EARLY);
}
