//! Converts the command line to the plan of a race.

use heapdrome_engine::race::{Planned, Wanted, check_command, plan, seed_from_clock};
use heapdrome_engine::workload::Asked;
use heapdrome_engine::{Engine, placement};

use super::options::options;
use super::placeholders;
use super::stop::{Aim, stopping};
use crate::arguments::RaceArguments;
use crate::failure::Failure;
use crate::replay;

/// Creates the plan of a race from the command line.
///
/// # Errors
/// Returns an error if an option, a name or a file is invalid, or a requested allocator cannot be
/// built.
pub fn planned(arguments: &RaceArguments, engine: &Engine) -> Result<Planned, Failure> {
    let stopping = stopping(&arguments.stopping, arguments.quick, Aim::Decide)?;
    let mut options = options(arguments)?;
    let mut workload = workload(arguments)?;
    if let [threads] = arguments.threads[..] {
        workload = workload.map(|one| one.with_threads(threads)).transpose()?;
        options.pin = placement::processors(threads);
    }
    if workload.is_none() {
        check_command(&arguments.command, &options)?;
    }
    placeholders::hint(arguments);
    let wanted = Wanted {
        command: &arguments.command,
        workload: workload.as_ref(),
        allocators: &arguments.allocators,
        baseline: arguments.baseline(),
        options,
        stopping,
        seed: arguments.seed.unwrap_or_else(seed_from_clock),
        asked: arguments.asked(),
        part: None,
    };
    plan(wanted, engine)
}

/// Returns the workload or the replay that the command line requests; `None` for a command.
fn workload(arguments: &RaceArguments) -> Result<Option<Asked>, Failure> {
    if let Some(trace) = &arguments.trace {
        return Ok(Some(replay::asked(trace, &arguments.how)?.into()));
    }
    match &arguments.workload {
        Some(name) => Asked::parse(name, &arguments.command, arguments.quick).map(Some),
        None if arguments.command.is_empty() => Err(Failure::usage(
            "there is no command to race; write: heapdrome race -- COMMAND, or -w WORKLOAD, or --trace FILE",
        )),
        None => Ok(None),
    }
}
