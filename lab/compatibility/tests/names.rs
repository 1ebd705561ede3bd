//! Checks that `heapdrome-compatibility` refuses unknown names, and refuses a program if the only
//! selected library is bumpmalloc, under which no program runs.

use std::process::{Command, Output};

fn run(names: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heapdrome-compatibility"));
    command.args(names).output().expect("it starts")
}

fn refused(names: &[&str], why: &str) {
    let output = run(names);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{names:?}: {said}");
    assert!(said.contains(why), "{names:?}: {said}");
    assert!(output.stdout.is_empty(), "nothing was run");
}

#[test]
fn a_name_that_is_none_is_refused() {
    refused(&["gcc", "no-such-program"], "no-such-program");
}

#[test]
fn programs_are_not_passed_over_where_only_bumpmalloc_is_named() {
    refused(&["bumpmalloc", "gcc"], "gcc runs under elfmalloc");
}
