//! Runs the checks in a program of each allocator. The checks of background purging and of
//! statistics run only with elfmalloc's variants, and that of huge pages only with elfmalloc-l.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const CHECKS: [&str; 7] = [
    "served", "layouts", "empty", "refusals", "errno", "threads", "forks",
];

const BUMPMALLOC: &str = env!("CARGO_BIN_EXE_global-bumpmalloc");
const ELFMALLOC: &str = env!("CARGO_BIN_EXE_global-elfmalloc");
const ELFMALLOC_L: &str = env!("CARGO_BIN_EXE_global-elfmalloc-l");
const HARDENED: &str = env!("CARGO_BIN_EXE_global-elfmalloc-hardened");

fn run(program: &str, check: &str, environment: &[(&str, &Path)]) -> Output {
    let mut command = Command::new(program);
    command.arg(check).envs(environment.iter().copied());
    let output = command.output().expect("the program can be run");
    assert!(output.status.success(), "{check}: {output:?}");
    output
}

fn must_pass(program: &str) {
    for check in CHECKS {
        run(program, check, &[]);
    }
}

#[test]
fn bumpmalloc_passes() {
    must_pass(BUMPMALLOC);
}

#[test]
fn elfmalloc_passes() {
    must_pass(ELFMALLOC);
}

#[test]
fn elfmalloc_l_passes() {
    must_pass(ELFMALLOC_L);
}

#[test]
fn elfmalloc_hardened_passes() {
    must_pass(HARDENED);
}

#[test]
fn the_thread_that_purges_is_started_anew_in_a_child() {
    for program in [ELFMALLOC, ELFMALLOC_L, HARDENED] {
        let wanted = ("ELFMALLOC_BACKGROUND_PURGE", Path::new("1"));
        run(program, "background", &[wanted]);
    }
}

#[test]
fn elfmalloc_l_asks_for_no_huge_pages_here_either() {
    run(ELFMALLOC_L, "small-pages", &[]);
}

fn must_be_of(report: &[u8], name: &str) {
    let text = String::from_utf8_lossy(report);
    assert_eq!(text.lines().count(), 1, "{name}: {text}");
    let report: Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(report["allocator"], name);
    let refills = report["refills"].as_u64();
    assert!(refills.is_some_and(|count| count > 0), "{text}");
}

#[test]
fn statistics_are_reported_at_exit() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (program, name) in [
        (ELFMALLOC, "elfmalloc"),
        (ELFMALLOC_L, "elfmalloc-l"),
        (HARDENED, "elfmalloc-hardened"),
    ] {
        assert!(run(program, "nothing", &[]).stderr.is_empty());
        let form = ("ELFMALLOC_STATISTICS", Path::new("json"));
        must_be_of(&run(program, "nothing", &[form]).stderr, name);
        let file = folder.path().join(name);
        let to_file = [form, ("ELFMALLOC_STATISTICS_FILE", &file)];
        assert!(run(program, "nothing", &to_file).stderr.is_empty());
        must_be_of(&std::fs::read(&file).expect("the report was written"), name);
    }
}
