//! Tests of the times in a recording: the processor time of each process, and the share of it that
//! the program spends in the allocator.

use std::collections::HashMap;

use crate::record::record;
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
        text.contains("is unknown: ") && text.contains("timed"),
        "{text}"
    );
}

/// Each of the 100 large blocks takes as long as thousands of others, so a sample of all calls
/// contains none or one of them.
#[test]
fn rare_calls_for_large_blocks_are_in_the_share() {
    let site = Site::new();
    let recorded = recorded_program();
    let record = ["record", "-o", "app.trace", "--", &recorded, "large", "300"];
    let outcome = site.run(&record);
    outcome.ends_with(0);
    let share: f64 = outcome.stdout.trim().parse().expect("a share");
    let outcome = site.run(&["profile", "app.trace", "--csv", "app.csv"]);
    outcome.ends_with(0);
    let text = std::fs::read_to_string(site.path("app.csv")).expect("a table");
    let figure = |name: &str| -> f64 {
        let line = text.lines().find(|line| line.contains(name));
        let value = line.and_then(|line| line.rsplit(',').next()?.parse().ok());
        value.unwrap_or_else(|| panic!("{name}: {text}"))
    };
    let allocator = figure("all,,summary,,allocator_time_ns");
    let found = allocator / figure("all,,summary,,processor_time_ns");
    // The other calls take time in the allocator, too.
    assert!(
        found > share * 0.9 && found < share + 0.25,
        "{found} {share}"
    );
}

/// Processes that are killed or call `_exit` do not record their processor time at their end.
#[test]
fn processes_that_end_early_have_their_processor_time() {
    for (end, process, lacks) in [("kill", 0, 0.01), ("_exit", 0, 0.01), ("fork", 0, 0.1)] {
        // Takes the program's own reading of its processor time, and the error of the trace's
        // value, both in seconds.
        let is_right = |[time, error]: [f64; 2]| -> bool {
            // The program's reading includes the loader's work, which the trace may lack. The trace
            // may include later work, such as the kernel's unmapping of memory.
            error > -0.003 - lacks * time && error < 0.003 + 0.01 * time
        };
        let run = || {
            let site = Site::new();
            let (outcome, trace) = record(&site, &["works_until", "60000", end]);
            let time: f64 = outcome.stdout.trim().parse().expect("nanoseconds");
            let finish = trace.finishes.iter().find(|it| it.process == process);
            let finish = finish.expect("the process that works");
            let found = finish.processor_time.expect("the processor time is known");
            [time / 1e9, (found as f64 - time) / 1e9]
        };
        let mut seen = Vec::new();
        while seen.len() < 5 && !seen.last().copied().is_some_and(is_right) {
            seen.push(run());
        }
        assert!(
            seen.last().copied().is_some_and(is_right),
            "{end}: {seen:?}"
        );
    }
}

/// Each program works for 10 ms before it executes the next one, too briefly for the collector to
/// read all of their times.
#[test]
fn a_program_is_not_charged_for_the_one_before_it() {
    let site = Site::new();
    let (_, trace) = record(&site, &["burn", "8"]);
    let times = trace.finishes.iter().map(|finish| finish.processor_time);
    let times: Vec<_> = times
        .map(|time| time.unwrap_or_default() / 1_000_000)
        .collect();
    assert_eq!(times.len(), 8);
    assert!(
        times.iter().all(|time| (10..18).contains(time)),
        "{times:?}"
    );
}

/// The recorder's time is processor time, which does not pass while a thread waits for the
/// collector.
#[test]
fn waits_for_the_collector_are_not_the_recorders_time() {
    let site = Site::new();
    let recorded = recorded_program();
    let record = ["record", "--stacks=1", "-o", "app.trace", "--", &recorded];
    let outcome = site.run(&[&record[..], &["deep", "100000"]].concat());
    outcome.ends_with(0);
    let trace = crate::record::Trace::read(&site.path("app.trace"));
    let finish = &trace.finishes[0];
    let timed = finish.timed.expect("timed calls");
    let processor = finish.processor_time.expect("it exited") as f64;
    assert!(finish.waited as f64 > processor, "{finish:?}");
    let recording = timed.recording as f64 / timed.calls as f64 * 200_000.0;
    assert!(recording < processor, "{finish:?}");
}
