//! Tests of the share of processor time that a recorded program spends in the allocator.

use std::collections::HashMap;

use crate::support::{Site, allocator, recorded_program};

/// Records the program of the fixtures under their slow allocator, and returns the summary of its
/// profile as text, and its figures.
fn profile(site: &Site, options: &[&str], program: &[&str]) -> (String, HashMap<String, f64>) {
    let slow = allocator("slow");
    let slow = slow.to_str().expect("a plain path");
    let recorded = recorded_program();
    let record = ["record", "-o", "app.trace", "-a", slow];
    let words = [&record, options, &["--", &recorded], program].concat();
    site.run(&words).ends_with(0);
    let outcome = site.run(&["profile", "app.trace", "--csv", "app.csv"]);
    outcome.ends_with(0);
    let text = std::fs::read_to_string(site.path("app.csv")).expect("a table");
    let figure = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let [process, _, table, _, name, value] = cells[..] else {
            return None;
        };
        let is_sum = process == "all" && table == "summary";
        let known = is_sum.then(|| (name.to_owned(), value.parse().ok()));
        known.and_then(|(name, value)| Some((name, value?)))
    };
    (outcome.stdout, text.lines().filter_map(figure).collect())
}

#[test]
fn the_share_is_that_of_a_program_which_works_three_times_as_long_as_its_allocator() {
    for options in [&[][..], &["--stacks"]] {
        // About 700 calls are timed. On a busy machine, a few that are interrupted make the
        // interval wide, or move the share. A wrong estimate is wrong in every run, so one right
        // run of five is enough.
        let is_right = |[share, half]: [f64; 2]| half < 0.04 && (share - 0.25).abs() < 0.1;
        let run = || {
            let (text, figures) = profile(&Site::new(), options, &["works", "30000"]);
            assert!(text.contains("of the processor time is spent in the allocator"));
            ["allocator_time_ns", "allocator_time_half_width_ns"]
                .map(|name| figures[name] / figures["processor_time_ns"])
        };
        let mut seen = Vec::new();
        while seen.len() < 5 && !seen.last().copied().is_some_and(is_right) {
            seen.push(run());
        }
        assert!(seen.last().copied().is_some_and(is_right), "{seen:?}");
    }
}

/// A thread's first calls are timed as often as all others. Otherwise short threads would count for
/// less than long ones.
#[test]
fn calls_of_short_threads_are_timed_as_often_as_others() {
    let (text, _) = profile(&Site::new(), &[], &["brief", "30000"]);
    let words: Vec<&str> = text.split_whitespace().collect();
    let number_before = |following: &[&str]| -> f64 {
        let place = words
            .windows(following.len())
            .position(|seen| seen == following);
        let number = place.and_then(|place| words.get(place.checked_sub(1)?));
        let number = number.and_then(|word| word.replace(',', "").parse().ok());
        number.unwrap_or_else(|| panic!("{text}"))
    };
    let timed = number_before(&["calls", "were", "timed."]);
    let expected = number_before(&["calls,"]) / 256.0;
    assert!(expected > 1000.0, "{expected}");
    let error = (timed - expected) / expected.sqrt();
    assert!(
        error.abs() < 5.0,
        "{timed} of {expected}: {error} deviations"
    );
}

#[test]
fn an_unknown_share_has_its_reason() {
    let site = Site::new();
    let (text, figures) = profile(&site, &["--sample", "1K"], &["works", "100"]);
    assert!(text.contains("no calls are timed"), "{text}");
    assert!(!figures.contains_key("allocator_time_ns"));
    let site = Site::new();
    let (text, _) = profile(&site, &[], &["works", "10"]);
    assert!(
        text.contains("is unknown: ") && text.contains(" timed"),
        "{text}"
    );
}
