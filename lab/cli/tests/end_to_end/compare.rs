//! Tests of `heapdrome compare`: the changes, the conditions that fail a build, and refused input.

use serde_json::Value;

use crate::saved::{self, EXPERIMENT, RACE, SUITE, SWEEP};
use crate::support::{Outcome, Site};

fn race() -> Value {
    saved::value(RACE)
}

/// Multiplies the wall times of an allocator by `factor`; an empty name means all allocators.
fn slow_down(result: &mut Value, allocator: &str, factor: f64) {
    multiply(result, "wall_s", allocator, factor);
}

/// Multiplies the samples of an allocator's figure by `factor`; an empty name means all allocators.
fn multiply(result: &mut Value, figure: &str, allocator: &str, factor: f64) {
    let rows = result["entrants"].as_array_mut().expect("rows");
    for row in rows {
        let own = allocator.is_empty() || row["allocator"] == allocator;
        let Some(samples) = row[figure]["samples"].as_array_mut().filter(|_| own) else {
            continue;
        };
        for sample in samples {
            *sample = Value::from(sample.as_f64().expect("a figure") * factor);
        }
    }
}

/// Compares the race with a copy that `change` has modified.
fn compared(change: impl Fn(&mut Value), options: &[&str]) -> (Site, Outcome) {
    let site = Site::new();
    let old = race();
    let mut new = old.clone();
    change(&mut new);
    site.file("old.json", old.to_string());
    site.file("new.json", new.to_string());
    let words = [&["compare", "old.json", "new.json"], options].concat();
    let outcome = site.run(&words);
    (site, outcome)
}

#[test]
fn nothing_has_changed_between_a_race_and_itself() {
    let (_, outcome) = compared(|_| {}, &["--fail-if", "any wall > 5%"]);
    outcome.ends_with(0).tells("No change was shown");
    // The interval of one hardened allocator extends above 5%, so the condition is not ruled out.
    outcome.tells("any wall > 5%: undecided");
}

#[test]
fn a_confirmed_condition_fails_and_others_do_not() {
    let slower = |new: &mut Value| slow_down(new, "mimalloc3", 1.06);
    let conditions = [
        "mimalloc3 wall > 2%",
        "mimalloc3 wall > 6%",
        "rpmalloc wall > 2%",
    ];
    let options: Vec<&str> = conditions
        .iter()
        .flat_map(|one| ["--fail-if", one])
        .collect();
    let (_, outcome) = compared(slower, &options);
    outcome.complains(1, &["confirmed: mimalloc3 wall > 2%"]);
    outcome.tells("mimalloc3 wall > 2%: confirmed");
    outcome.tells("mimalloc3 wall > 6%: undecided");
    outcome.tells("rpmalloc wall > 2%: ruled out");
    outcome.tells("mimalloc3: wall time 6.");
    let (_, undecided) = compared(slower, &options[2..]);
    undecided.ends_with(0);
}

#[test]
fn what_slowed_down_everyone_is_the_machines_change() {
    let slower = |new: &mut Value| slow_down(new, "", 1.5);
    let (_, outcome) = compared(slower, &["--fail-if", "any wall > 2%"]);
    outcome.ends_with(0).tells("any wall > 2%: undecided");
    outcome.tells("took 1.500 times as long");
}

#[test]
fn a_program_that_holds_more_under_everyone_holds_more() {
    let larger = |new: &mut Value| multiply(new, "peak_rss_bytes", "", 3.0);
    let (_, outcome) = compared(larger, &["--fail-if", "any peak_rss > 10%"]);
    outcome.ends_with(1).tells("any peak_rss > 10%: confirmed");
}

#[test]
fn between_machines_ratios_to_the_baseline_count() {
    let moved = |new: &mut Value| {
        slow_down(new, "", 0.5);
        slow_down(new, "mimalloc3", 1.06);
        new["machine"]["processor"] = Value::from("another");
    };
    let (site, outcome) = compared(
        moved,
        &[
            "--fail-if",
            "mimalloc3 wall > 2%",
            "--json",
            "c.json",
            "--markdown",
            "c.md",
        ],
    );
    outcome.says(1, &["confirmed: mimalloc3 wall > 2%"]);
    let text = std::fs::read_to_string(site.path("c.json")).expect("written");
    let changes: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(changes["same_machine"], false);
    assert_eq!(changes["conditions"][0]["outcome"], "confirmed");
    let rows = changes["pairs"][0]["changes"].as_array().expect("changes");
    assert!(
        rows.iter()
            .all(|row| row["allocator"] != "system" && row["itself"].is_null())
    );
    let markdown = std::fs::read_to_string(site.path("c.md")).expect("written");
    assert!(markdown.contains("| mimalloc3 |"), "{markdown}");
}

/// Marks an allocator as failed.
fn fail(result: &mut Value, allocator: &str) {
    let rows = result["entrants"].as_array_mut().expect("rows");
    let own = rows.iter_mut().find(|row| row["allocator"] == allocator);
    own.expect("it raced")["status"] = Value::from("failed");
}

#[test]
fn an_allocator_that_fails_now_is_a_confirmed_change() {
    let broken = |new: &mut Value| fail(new, "rpmalloc");
    let (_, outcome) = compared(broken, &["--fail-if", "rpmalloc wall > 2%"]);
    outcome.complains(1, &["rpmalloc wall > 2%"]);
    outcome.tells("rpmalloc: sound in the old race, failed in the new");
}

#[test]
fn a_baseline_that_fails_now_confirms_any() {
    let broken = |new: &mut Value| fail(new, "system");
    let (_, outcome) = compared(broken, &["--fail-if", "any wall > 50%"]);
    outcome.complains(1, &["confirmed: any wall > 50%"]);
    outcome.tells("system: sound in the old race, failed in the new");
}

#[test]
fn suites_are_compared_race_by_race() {
    let site = Site::new();
    let mut suite = saved::value(SUITE);
    site.file("old.json", suite.to_string());
    suite["races"].as_array_mut().expect("races").remove(0);
    site.file("new.json", suite.to_string());
    let outcome = site.run(&["compare", "old.json", "new.json"]);
    outcome.ends_with(0).tells("No change was shown");
    outcome.tells("in the old result only");
}

#[test]
fn a_race_that_came_to_nothing_fails_the_conditions() {
    let site = Site::new();
    let suite = saved::value(SUITE);
    let mut broken = suite.clone();
    broken["races"][0]["result"]["rounds"] = Value::from(0);
    site.file("old.json", suite.to_string());
    site.file("new.json", broken.to_string());
    let compare = |old, new| site.run(&["compare", old, new, "--fail-if", "any wall > 50%"]);
    let outcome = compare("old.json", "new.json");
    outcome.complains(1, &["confirmed: any wall > 50%"]);
    outcome.tells("no complete round in the new result");
    let reversed = compare("new.json", "old.json");
    reversed.ends_with(0);
    reversed.tells("no complete round in the old result");
}

#[test]
fn a_condition_that_nothing_could_confirm_is_refused() {
    let told = "nothing could confirm it";
    let (_, time) = compared(|_| {}, &["--fail-if", "system wall > 2%"]);
    time.complains(2, &["system wall > 2%", told]);
    assert_eq!(time.stdout, "");
    let memory = ["--fail-if", "system peak_rss > 2%"];
    compared(|_| {}, &memory).1.ends_with(0);
    let elsewhere = [&memory[..], &["--machines-differ"]].concat();
    let (_, outcome) = compared(|_| {}, &elsewhere);
    outcome.complains(2, &["system peak_rss > 2%", told]);
}

/// Resizes the samples of a figure, or of every figure if the name is empty, to `runs`. Repeats the
/// last sample if there are too few.
fn cut(result: &mut Value, figure: &str, runs: usize) {
    let rows = result["entrants"].as_array_mut().expect("rows");
    let figures = rows.iter_mut().filter_map(Value::as_object_mut).flatten();
    for (_, series) in figures.filter(|(name, _)| figure.is_empty() || *name == figure) {
        if let Some(samples) = series.get_mut("samples").and_then(Value::as_array_mut) {
            let last = samples.last().cloned().expect("a run");
            samples.resize(runs, last);
        }
    }
}

#[test]
fn a_figure_that_has_no_interval_in_any_race_is_refused() {
    let site = Site::new();
    let mut race = race();
    site.file("one.json", race.to_string());
    cut(&mut race, "peak_tree_bytes", 5);
    site.file("five.json", race.to_string());
    cut(&mut race, "", 4);
    site.file("few.json", race.to_string());
    cut(&mut race, "peak_tree_bytes", 0);
    site.file("none.json", race.to_string());
    let tree = "any peak_tree > 10%";
    let compare = |old, new, condition| site.run(&["compare", old, new, "--fail-if", condition]);
    let refused = |old, new, condition, told: &str| {
        let outcome = compare(old, new, condition);
        let words = ["nothing could confirm it", "an interval needs 5", told];
        outcome.complains(2, &words);
        assert_eq!(outcome.stdout, "");
    };
    let more = "peak_tree has 1 run in the old result";
    refused("one.json", "five.json", tree, more);
    refused("one.json", "five.json", tree, "race with --memory-runs 5");
    let none = "peak_tree has no run in the new result";
    refused("five.json", "none.json", tree, none);
    let few = "wall has 4 runs in the new result";
    refused("five.json", "few.json", "any wall > 2%", few);
    refused(
        "few.json",
        "five.json",
        "mimalloc3 wall > 2%",
        "race with --rounds 5",
    );
    compare("five.json", "five.json", tree).ends_with(0);
    // An entrant that fails only in the new result confirms a condition even without an interval.
    fail(&mut race, "rpmalloc");
    site.file("failed.json", race.to_string());
    compare("few.json", "failed.json", "any wall > 2%").complains(1, &["confirmed: any wall > 2%"]);
}

#[test]
fn a_mistake_is_one_line() {
    let other = |new: &mut Value| new["command"][2] = Value::from("other");
    compared(other, &[]).1.complains(2, &["different commands"]);
    let newer = |new: &mut Value| new["schema"] = Value::from(2);
    compared(newer, &[]).1.complains(2, &["schema 2"]);
    let empty = |new: &mut Value| new["rounds"] = Value::from(0);
    compared(empty, &[]).1.complains(2, &["no complete round"]);
    let stranger = |new: &mut Value| {
        for row in new["entrants"].as_array_mut().expect("rows") {
            row["allocator"] = Value::from(format!("other-{}", row["allocator"]));
        }
        new["baseline"] = Value::from("other");
    };
    compared(stranger, &[])
        .1
        .complains(2, &["no allocator counts in both"]);
    for (condition, told) in [
        ("mimaloc3 wall > 2%", "did you mean mimalloc3?"),
        ("any wal > 2%", "did you mean wall?"),
        ("any wall", "one > or <"),
        ("any wall > 2", "a percentage"),
        ("any wall < 2%", "negative percentage"),
    ] {
        let (_, outcome) = compared(|_| {}, &["--fail-if", condition]);
        outcome.complains(2, &["--fail-if", told]);
        assert_eq!(
            outcome.stdout, "",
            "nothing is compared before the mistake is found"
        );
    }
}

#[test]
fn a_result_is_not_written_over() {
    let site = Site::new();
    let race = race().to_string();
    site.file("old.json", &race);
    site.file("new.json", &race);
    for (option, file) in [("--json", "old.json"), ("--markdown", "./new.json")] {
        let outcome = site.run(&["compare", "old.json", "new.json", option, file]);
        outcome.complains(2, &[file, "is an input"]);
        assert_eq!(outcome.stdout, "", "nothing is done before");
    }
    for file in ["old.json", "new.json"] {
        let left = std::fs::read_to_string(site.path(file)).expect("it is there");
        assert!(left == race, "{file} is as it was");
    }
}

#[test]
fn files_that_are_no_results_are_named() {
    let site = Site::new();
    let race = race().to_string();
    site.file("race.json", &race);
    site.file("cut.json", &race[..race.len() / 2]);
    site.file("foreign.json", "{\"name\": \"x\"}");
    site.file("suite.json", saved::text(SWEEP));
    let compare = |other: &str| site.run(&["compare", "race.json", other]);
    compare("cut.json").complains(2, &["cut.json", "cut short"]);
    compare("foreign.json").complains(2, &["foreign.json", "not a heapdrome result"]);
    compare("missing.json").complains(2, &["cannot read missing.json"]);
    compare("suite.json").complains(2, &["a race and the new one a collection"]);
}

#[test]
fn results_without_races_are_not_compared_yet() {
    let site = Site::new();
    site.file("r.json", saved::text(EXPERIMENT));
    site.run(&["compare", "r.json", "r.json"]).complains(
        2,
        &["a result of lgalloc has no races", "cannot be compared yet"],
    );
}
