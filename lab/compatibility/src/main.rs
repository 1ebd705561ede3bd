//! `heapdrome-compatibility [NAME...]` puts heapdrome's own allocators to the test, and prints tables: the
//! conformance suite, by the name `conformance`, and real programs. By default all, on all libraries; the name of an
//! allocator chooses its library. Exit status: 0 nothing failed that could be run, 1 something did, 2 wrong
//! arguments, 4 the machine is not fit for it.
//!
//! `heapdrome-compatibility execute PROGRAM [LIBRARY]` runs one program of the suite, as its children do.

use std::process::ExitCode;

use heapdrome_compatibility::{ALLOCATORS, Bench, Outcome, Program, conformance, programs};
use heapdrome_conformance::execute_file;

/// The name of the conformance suite among those of programs.
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

fn test(wanted: &[String]) -> ExitCode {
    let all = match programs() {
        Ok(all) => all,
        Err(error) => return complain(&format!("the list of programs is wrong: {error}"), 4),
    };
    let (allocators, wanted): (Vec<&str>, Vec<&str>) = wanted
        .iter()
        .map(String::as_str)
        .partition(|name| conformance::LIBRARIES.contains(name));
    let unknown = wanted
        .iter()
        .filter(|name| **name != CONFORMANCE)
        .find(|name| all.iter().all(|program| program.name != **name));
    if let Some(name) = unknown {
        let mut names: Vec<_> = all.iter().map(|program| program.name.as_str()).collect();
        names.push(CONFORMANCE);
        names.extend(conformance::LIBRARIES);
        let names = names.join(", ");
        return complain(&format!("there is no program {name}, but {names}"), 2);
    }
    let is_wanted = |name: &str| wanted.is_empty() || wanted.contains(&name);
    let chosen: Vec<_> = all.iter().filter(|one| is_wanted(&one.name)).collect();
    match tables(&allocators, is_wanted(CONFORMANCE), &chosen) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => complain(&error.to_string(), 4),
    }
}

fn complain(what: &str, status: u8) -> ExitCode {
    eprintln!("{what}");
    ExitCode::from(status)
}

/// Prints the tables that are asked for, with the allocators named or all; true if nothing failed.
fn tables(named: &[&str], suite: bool, chosen: &[&Program]) -> std::io::Result<bool> {
    let of = |all: &[&'static str]| -> Vec<&'static str> {
        let is_named = |name: &&str| named.is_empty() || named.contains(name);
        all.iter().copied().filter(is_named).collect()
    };
    let bench = Bench::new()?;
    let mut well = true;
    if suite {
        well = conformance::table(&bench, &of(&conformance::LIBRARIES))?;
        println!();
    }
    let allocators = of(&ALLOCATORS);
    if !chosen.is_empty() && !allocators.is_empty() {
        well &= table(&bench, &allocators, chosen)?;
    }
    Ok(well)
}

/// Prints a row for each program, as soon as it is known; true if none failed.
fn table(bench: &Bench, allocators: &[&str], chosen: &[&Program]) -> std::io::Result<bool> {
    let mut well = true;
    println!("| program | what it did | {} |", allocators.join(" | "));
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
                other => other.to_string().replace('\n', " ").replace('|', "/"),
            };
            print!(" {text} |");
        }
        println!();
    }
    Ok(well)
}
