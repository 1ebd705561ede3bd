//! `heapdrome-compatibility [PROGRAM...]` runs real programs, by default all, under each of heapdrome's own
//! allocators, and prints a table. Exit status: 0 none that is installed failed, 1 one did, 2
//! wrong arguments, 4 the machine is not fit for it.

use std::process::ExitCode;

use heapdrome_compatibility::{ALLOCATORS, Bench, Outcome, Program, programs};

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let all = match programs() {
        Ok(all) => all,
        Err(error) => return complain(&format!("the list of programs is wrong: {error}"), 4),
    };
    let unknown = wanted
        .iter()
        .find(|name| all.iter().all(|program| program.name != **name));
    if let Some(name) = unknown {
        let names: Vec<_> = all.iter().map(|program| program.name.as_str()).collect();
        let names = names.join(", ");
        return complain(&format!("there is no program {name}, but {names}"), 2);
    }
    let chosen = |program: &&Program| wanted.is_empty() || wanted.contains(&program.name);
    match table(all.iter().filter(chosen)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => complain(&error.to_string(), 4),
    }
}

fn complain(what: &str, status: u8) -> ExitCode {
    eprintln!("{what}");
    ExitCode::from(status)
}

/// Prints a row for each program, as soon as it is known; true if none failed.
fn table<'a>(chosen: impl Iterator<Item = &'a Program>) -> std::io::Result<bool> {
    let bench = Bench::new()?;
    let mut well = true;
    println!("| program | what it did | {} |", ALLOCATORS.join(" | "));
    println!("|---|---|{}", "---|".repeat(ALLOCATORS.len()));
    for program in chosen {
        print!("| {} | {} |", program.name, program.does);
        if let Some(missing) = program.missing() {
            println!(
                " {}",
                format!("not run: {missing} |").repeat(ALLOCATORS.len())
            );
            continue;
        }
        for allocator in ALLOCATORS {
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
