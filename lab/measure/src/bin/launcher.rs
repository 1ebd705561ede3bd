//! Test program that serves as a launcher, or as a measurer that tests can kill. With the arguments
//! `WORD FOLDER ROUNDS COMMAND...`, the measurer races the system's allocator against itself in
//! `FOLDER`, or resumes the race in that folder. The entrants' names and the error messages begin
//! with `WORD`.

use std::path::Path;
use std::process::ExitCode;

use heapdrome_measure::launcher::{self, LauncherProgram};
use heapdrome_measure::{Interrupt, MeasureError, Race, journal};
use heapdrome_schema::{Entrant, Machine, Plan, Role, Stopping};

fn main() -> ExitCode {
    launcher::main_if_asked();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [word, folder, rounds, command @ ..] = arguments.as_slice() else {
        eprintln!("this program is started by heapdrome's tests");
        return ExitCode::from(2);
    };
    let rounds = rounds.parse().unwrap_or(1);
    match race(word, Path::new(folder), rounds, command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{word}: {error}");
            ExitCode::from(4)
        }
    }
}

fn race(word: &str, folder: &Path, rounds: u32, command: &[String]) -> Result<(), MeasureError> {
    let program = LauncherProgram::of_this_executable();
    let mut race = if folder.join(journal::FILE_NAME).exists() {
        Race::resume_with(&program, folder)?
    } else {
        Race::start_with(&program, plan(word, command), Machine::default(), folder)?
    };
    while race.complete_rounds() < rounds && race.failures().is_empty() {
        race.next_round(&mut |_| {}, &Interrupt::default())?;
    }
    Ok(())
}

fn plan(word: &str, command: &[String]) -> Plan {
    let entrant = |name: &str, role| Entrant {
        name: format!("{word}-{name}"),
        role,
        ..Entrant::default()
    };
    Plan {
        command: command.to_vec(),
        started_in: "/".into(),
        entrants: vec![
            entrant("system", Role::Baseline),
            entrant("again", Role::Twin),
        ],
        seed: 5,
        stopping: Stopping {
            min_rounds: 1,
            max_rounds: 1,
            ..Stopping::default()
        },
        alpha: 0.05,
        ..Plan::default()
    }
}
