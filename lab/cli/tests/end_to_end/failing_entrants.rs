//! Tests of failing allocators and commands. The failure is reported with its kind and place. If
//! only one allocator fails, the race continues with the others.

use crate::support::{Site, allocator, program, row};

/// Races a broken allocator beside a sound allocator, and returns the site, the broken allocator's
/// row and the standard output.
#[track_caller]
fn beside_a_sound_one(fault: &str, options: &[&str]) -> (Site, serde_json::Value, String) {
    let (site, broken, sound) = (Site::new(), allocator(fault), allocator(""));
    let (outcome, result) = site.race(&[&broken, &sound], options, &[&program()]);
    outcome.says(1, &["not in the race", &format!("lib{fault}.so")]);
    assert_eq!(row(&result, &sound)["status"], "ok", "the race goes on");
    assert_eq!(
        row(&result, &sound)["wall_s"]["samples"]
            .as_array()
            .map(Vec::len),
        Some(2)
    );
    let row = row(&result, &broken).clone();
    assert!(
        row["versus_baseline"]
            .as_object()
            .is_some_and(serde_json::Map::is_empty),
        "{row}"
    );
    (site, row, outcome.stdout)
}

#[test]
fn a_crashing_allocator_is_named_with_its_signal() {
    let (_site, row, table) = beside_a_sound_one("crashing", &[]);
    assert_eq!(row["status"], "failed");
    assert_eq!(row["failure"]["ending"]["killed"], libc::SIGSEGV);
    assert!(table.contains("SIGSEGV"), "{table}");
}

#[test]
fn an_allocator_that_corrupts_memory_is_named_with_what_the_program_said() {
    let (_site, row, table) = beside_a_sound_one("overlapping", &[]);
    assert_eq!(row["status"], "failed");
    assert_eq!(row["failure"]["ending"]["exited"], 9);
    let tail = row["failure"]["stderr_tail"]
        .as_str()
        .expect("the last lines");
    assert!(tail.contains("lost its content"), "{tail}");
    assert!(table.contains("lost its content"), "{table}");
}

#[test]
fn an_allocator_that_hangs_runs_out_of_time() {
    let (_site, row, table) = beside_a_sound_one("hanging", &["--timeout", "5"]);
    assert_eq!(row["status"], "timeout");
    assert!(
        table.contains("timed out") || table.contains("out of time"),
        "{table}"
    );
}

#[test]
fn a_program_that_crashes_by_itself_is_no_allocators_fault() {
    let (site, sound) = (Site::new(), allocator(""));
    let (outcome, _) = site.race(&[&sound], &[], &[&program(), "crash"]);
    outcome.says(3, &["under the baseline", "SIGABRT", "about to crash"]);
}

#[test]
fn a_command_that_fails_is_no_allocators_fault() {
    let (site, sound) = (Site::new(), allocator(""));
    let (outcome, _) = site.race(&[&sound], &[], &["sh", "-c", "exit 4"]);
    outcome.says(3, &["under the baseline", "exit status 4"]);
    let options = ["--success", "4", "--memory-runs", "0"];
    let (outcome, _) = site.race(&[&sound], &options, &["sh", "-c", "exit 4"]);
    outcome.ends_with(0);
}

#[test]
fn a_command_that_is_too_slow_is_no_allocators_fault() {
    let (site, sound) = (Site::new(), allocator(""));
    let (outcome, _) = site.race(&[&sound], &["--timeout", "0.2"], &["sleep", "30"]);
    outcome.says(3, &["under the baseline", "timed out"]);
}

#[test]
fn a_check_that_always_fails_is_no_allocators_fault() {
    let (site, sound) = (Site::new(), allocator(""));
    let (outcome, _) = site.race(&[&sound], &["--check", "exit 3"], &[&program()]);
    outcome.says(3, &["under the baseline", "check failed with status 3"]);
}

#[test]
fn checks_of_an_allocator_say_what_broke() {
    let (site, crashing, sound) = (Site::new(), allocator("crashing"), allocator(""));
    let outcome = site.run(&["allocators", "check", crashing.to_str().expect("plain")]);
    outcome.says(1, &["check failed", "libcrashing.so"]);
    outcome.tells("BROKE");
    outcome.tells("/basic_c.c");
    outcome.tells("LD_PRELOAD=");
    assert!(!outcome.stdout.contains("errno-kept"), "{}", outcome.stdout);
    let strictly = ["allocators", "check", "--level", "strict"];
    let outcome = site.run(&[&strictly[..], &[crashing.to_str().expect("plain")]].concat());
    outcome.says(1, &["check failed", "libcrashing.so"]);
    outcome.tells("errno-kept");
    let outcome = site.run(&["allocators", "check", sound.to_str().expect("plain")]);
    outcome.ends_with(0);
}

#[test]
fn a_command_that_fails_only_where_it_is_traced_is_not_blamed() {
    let (site, sound) = (Site::new(), allocator(""));
    let (outcome, _) = site.race(&[&sound], &[], &[&program(), "trace"]);
    let words = [
        "fails when heapdrome traces it",
        "cannot be traced",
        "one tracer",
    ];
    outcome.says(3, &words);
}

#[test]
fn an_allocator_that_gives_no_memory_fails_its_check_and_is_not_called_absent() {
    let (site, refusing) = (Site::new(), allocator("refusing"));
    let name = refusing.to_str().expect("plain");
    let outcome = site.run(&["allocators", "check", name]);
    outcome.says(1, &["a check failed under"]);
    assert!(!outcome.stdout.contains("NOT SERVED"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("BROKE"), "{}", outcome.stdout);
}
