//! Runs the conformance suite on the chosen libraries: checks of the ABI, and generated programs.

use std::io;

use heapdrome_conformance::{Failure, Library, Suite, checks};

use crate::Bench;

/// Names of the libraries, without `lib` and `.so`.
pub const LIBRARIES: [&str; 4] = [
    "bumpmalloc",
    "elfmalloc",
    "elfmalloc-l",
    "elfmalloc-hardened",
];
/// Total number of steps of a generated program, on [`THREADS`] threads.
const STEPS: usize = 1_000_000;
const THREADS: usize = 8;
/// Number of generated programs. Each runs with the library loaded, and with it preloaded.
const PROGRAMS: u64 = 2;

/// Runs the suite on `libraries`, which are names from [`LIBRARIES`]. Prints a row for each check,
/// then a row for the generated programs, each row as soon as its results are known. Returns true
/// if no check and no generated program failed.
///
/// # Errors
///
/// Returns an error if the executable of this process cannot be found, or a temporary folder cannot
/// be created.
pub fn table(bench: &Bench, libraries: &[&str]) -> io::Result<bool> {
    let executable = std::env::current_exe()?;
    let suite = |name: &&str| Suite {
        library: Library::File(bench.library(name)),
        executable: executable.clone(),
        seed: 1,
        programs: PROGRAMS,
        steps: STEPS,
        threads: THREADS,
    };
    let suites: Vec<Suite> = libraries.iter().map(suite).collect();
    let mut well = true;
    println!("| check | description | {} |", libraries.join(" | "));
    println!("|---|---|{}", "---|".repeat(libraries.len()));
    for check in checks() {
        print!("| {} | {} |", check.name, check.what);
        for suite in &suites {
            well &= say(suite.check(check)?);
        }
        println!();
    }
    print!(
        "| generated | {PROGRAMS} programs of {STEPS} calls on {THREADS} threads, loaded and preloaded |"
    );
    for suite in &suites {
        let failed = (0..PROGRAMS).find_map(|number| suite.program(suite.seed + number).err());
        well &= say(failed);
    }
    println!();
    Ok(well)
}

/// Prints a result as a table cell. Returns false if the result is a failure.
fn say(failure: Option<Failure>) -> bool {
    match &failure {
        None => print!(" passed |"),
        Some(failure) => print!(" failed: {} |", one_line(&failure.what)),
    }
    failure.is_none()
}

/// Replaces the line breaks and vertical bars of a text, which would break a cell of a Markdown
/// table.
#[must_use]
pub fn one_line(text: &str) -> String {
    text.replace('\n', " ").replace('|', "/")
}
