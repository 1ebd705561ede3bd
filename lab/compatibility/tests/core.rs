//! Runs the programs of the core under each library of elfmalloc.
//!
//! If `HEAPDROME_REQUIRE_PROGRAMS` is set, as `.ci/run` sets it, a program that is not installed is
//! a failure; otherwise the test prints a line and skips the program.

use heapdrome_compatibility::{Bench, Outcome, programs};

fn all_pass(allocator: &str) {
    let required = std::env::var_os("HEAPDROME_REQUIRE_PROGRAMS").is_some();
    let bench = Bench::new().expect("a folder and a witness");
    let mut failures = Vec::new();
    for program in programs().expect("the data files are right") {
        match program.missing() {
            _ if !program.core => {}
            Some(missing) if required => failures.push(format!("{}: {missing}", program.name)),
            Some(missing) => println!("not run: {}: {missing}", program.name),
            None => {
                let outcome = bench.run(&program, allocator).expect("it can be watched");
                println!("{}: {outcome}", program.name);
                if !matches!(outcome, Outcome::Passed { .. }) {
                    failures.push(format!("{}: {outcome}", program.name));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn elfmalloc_serves_the_core() {
    all_pass("elfmalloc");
}

#[test]
fn elfmalloc_l_serves_the_core() {
    all_pass("elfmalloc-l");
}

#[test]
fn elfmalloc_hardened_serves_the_core() {
    all_pass("elfmalloc-hardened");
}
