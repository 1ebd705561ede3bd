//! The conformance suite against each library: every corner of the ABI, and generated programs.

use std::io;

use heapdrome_conformance::{Failure, Library, Suite, checks};

use crate::Bench;

/// The libraries, by their names without `lib` and `.so`.
pub const LIBRARIES: [&str; 4] = [
    "bumpmalloc",
    "elfmalloc",
    "elfmalloc-l",
    "elfmalloc-hardened",
];
/// Calls of a generated program, on as many threads.
const STEPS: usize = 1_000_000;
const THREADS: usize = 8;
/// Generated programs, each of which is run with the library loaded, and preloaded.
const PROGRAMS: u64 = 2;

/// Prints a row for each check on libraries of [`LIBRARIES`], as soon as it is known, and one for
/// generated programs; true if none failed.
///
/// # Errors
///
/// If the executable of this process cannot be found, or there is no temporary folder.
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
    println!("| check | what | {} |", libraries.join(" | "));
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

/// Prints a cell; true if nothing failed.
fn say(failure: Option<Failure>) -> bool {
    match &failure {
        None => print!(" passed |"),
        Some(failure) => print!(" failed: {} |", one_line(&failure.what)),
    }
    failure.is_none()
}

/// Text that a cell of a Markdown table can hold.
pub(crate) fn one_line(text: &str) -> String {
    text.replace('\n', " ").replace('|', "/")
}
