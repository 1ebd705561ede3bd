//! Tests heapdrome's own allocators with the conformance suite and with real programs.
//!
//! `heapdrome-compatibility [NAME...]` prints a table of the suite's checks, and a table of the
//! programs. Without names, it runs the suite on all libraries, and all programs under the variants
//! of elfmalloc. A name selects a library, the suite (`conformance`) or a program. Exit status: 0
//! if no test failed, 1 if a test failed, 2 for wrong arguments, 4 if the machine cannot run the
//! tests.
//!
//! `heapdrome-compatibility execute PROGRAM [LIBRARY]` runs one generated program. The suite starts
//! this command in child processes.

use std::process::ExitCode;

use heapdrome_compatibility::{ALLOCATORS, Bench, Outcome, Program, conformance, programs};
use heapdrome_conformance::execute_file;

/// Name that selects the conformance suite.
const CONFORMANCE: &str = "conformance";

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    if let [mode, program, library @ ..] = wanted.as_slice()
        && mode == "execute"
        && library.len() <= 1
    {
        let library = library.first().map(AsRef::as_ref);
        return match execute_file(program.as_ref(), library) {
            Ok(()) => ExitCode::SUCCESS,
            Err((status, what)) => complain(&what, status),
        };
    }
    test(&wanted)
}

fn test(names: &[String]) -> ExitCode {
    let all = match programs() {
        Ok(all) => all,
        Err(error) => return complain(&format!("the list of programs is invalid: {error}"), 4),
    };
    let choice = match choose(names, &all) {
        Ok(choice) => choice,
        Err(why) => return complain(&why, 2),
    };
    match tables(&choice) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => complain(&error.to_string(), 4),
    }
}

struct Choice<'a> {
    /// The libraries for the conformance suite.
    suite: Vec<&'static str>,
    /// The allocators for programs.
    allocators: Vec<&'static str>,
    programs: Vec<&'a Program>,
}

/// Selects tests by their names. Returns a message if a name is unknown or cannot be combined with
/// the others.
fn choose<'a>(names: &[String], all: &'a [Program]) -> Result<Choice<'a>, String> {
    let (libraries, tests): (Vec<&str>, Vec<&str>) = names
        .iter()
        .map(String::as_str)
        .partition(|name| conformance::LIBRARIES.contains(name));
    let mut known: Vec<&str> = all.iter().map(|program| program.name.as_str()).collect();
    known.push(CONFORMANCE);
    if let Some(name) = tests.iter().find(|name| !known.contains(name)) {
        known.extend(conformance::LIBRARIES);
        return Err(format!(
            "no such program or allocator: {name}; there are {}",
            known.join(", ")
        ));
    }
    let of = |all: &[&'static str]| -> Vec<&'static str> {
        let is_named = |name: &&str| libraries.is_empty() || libraries.contains(name);
        all.iter().copied().filter(is_named).collect()
    };
    let is_wanted = |name: &str| tests.is_empty() || tests.contains(&name);
    let allocators = of(&ALLOCATORS);
    let program = tests.iter().find(|name| **name != CONFORMANCE);
    if let Some(program) = program.filter(|_| allocators.is_empty()) {
        let served = ALLOCATORS.join(", ");
        return Err(format!("{program} runs under {served} only"));
    }
    Ok(Choice {
        suite: of(&conformance::LIBRARIES)
            .into_iter()
            .filter(|_| is_wanted(CONFORMANCE))
            .collect(),
        allocators,
        programs: all.iter().filter(|one| is_wanted(&one.name)).collect(),
    })
}

fn complain(what: &str, status: u8) -> ExitCode {
    eprintln!("{what}");
    ExitCode::from(status)
}

/// Runs the selected tests and prints their tables. Returns true if no test failed.
fn tables(choice: &Choice) -> std::io::Result<bool> {
    let bench = Bench::new()?;
    let mut well = true;
    if !choice.suite.is_empty() {
        well = conformance::table(&bench, &choice.suite)?;
        println!();
    }
    if !choice.allocators.is_empty() && !choice.programs.is_empty() {
        well &= table(&bench, &choice.allocators, &choice.programs)?;
    }
    Ok(well)
}

/// Runs programs under allocators. Prints a row for each program as soon as its results are known.
/// Returns true if no program failed; a program that was not run or not served counts as not
/// failed.
fn table(bench: &Bench, allocators: &[&str], chosen: &[&Program]) -> std::io::Result<bool> {
    let mut well = true;
    println!("| program | description | {} |", allocators.join(" | "));
    println!("|---|---|{}", "---|".repeat(allocators.len()));
    for program in chosen {
        print!("| {} | {} |", program.name, program.does);
        if let Some(missing) = program.missing() {
            println!(
                " {}",
                format!("not run: {missing} |").repeat(allocators.len())
            );
            continue;
        }
        for allocator in allocators {
            let outcome = bench.run(program, allocator)?;
            well &= !matches!(outcome, Outcome::Failed(_));
            let text = match outcome {
                Outcome::Passed { proof, .. } => format!("passed: {proof}"),
                other => conformance::one_line(&other.to_string()),
            };
            print!(" {text} |");
        }
        println!();
    }
    Ok(well)
}
