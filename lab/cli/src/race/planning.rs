//! From the command line to a plan: every name looked up, every missing allocator built.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{SystemTime, UNIX_EPOCH};

use heapdrome_record::{Options, Part, Plan, Stopping};

use super::cell::{CellRequest, Load};
use super::entrants::entrants;
use super::options::{check_command, check_judged, options};
use super::placeholders;
use super::stopping::{Aim, stopping};
use crate::arguments::RaceArguments;
use crate::failure::Failure;
use crate::folders::Folders;
use crate::workload::{Asked, Ready};
use crate::{interrupt, placement};

/// What a race is going to do, and what must be kept while it does.
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// What the workload has locked stays so while this lives.
    pub workload: Option<Ready>,
}

/// The probability of one or more false verdicts on the judged figures in a race.
const ALPHA: f64 = 0.05;

/// Everything that a plan is made from.
struct Wanted<'a> {
    command: &'a [String],
    workload: Option<&'a Asked>,
    allocators: &'a [String],
    baseline: &'a str,
    options: Options,
    stopping: Stopping,
    seed: u64,
    asked: Vec<String>,
    part: Option<Part>,
}

/// Makes the plan.
///
/// # Errors
/// When an option, a name or a file is wrong, or an allocator that was asked for cannot be built.
pub fn plan(
    arguments: &RaceArguments,
    folders: &Folders,
    interrupt: &AtomicBool,
) -> Result<Planned, Failure> {
    let stopping = stopping(&arguments.stopping, arguments.quick, Aim::Decide)?;
    let mut options = options(arguments)?;
    let mut workload = workload(arguments)?;
    if let [threads] = arguments.threads[..] {
        workload = workload.map(|one| one.with_threads(threads)).transpose()?;
        options.pin = placement::processors(threads);
    }
    if let (Some(first), None) = (arguments.command.first(), &workload) {
        check_command(first, &options)?;
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
    make(wanted, folders, interrupt)
}

/// Makes the plan of a cell.
///
/// # Errors
/// As [`plan`].
pub fn plan_cell(
    request: &CellRequest,
    folders: &Folders,
    interrupt: &AtomicBool,
) -> Result<Planned, Failure> {
    let (command, workload) = match &request.load {
        Load::Workload { name, words, quick } => {
            (&[][..], Some(Asked::parse(name, words, *quick)?))
        }
        Load::Command(words) => (words.as_slice(), None),
    };
    let wanted = Wanted {
        command,
        workload: workload.as_ref(),
        allocators: &request.allocators,
        baseline: &request.baseline,
        options: request.options.clone(),
        stopping: request.stopping.clone(),
        seed: request.seed,
        asked: request.asked.clone(),
        part: request.part_of.clone().map(|of| Part {
            of,
            cell: request.cell.clone(),
        }),
    };
    make(wanted, folders, interrupt)
}

/// The workload that the command line asks for, with its parameters.
///
/// # Errors
/// When there is neither a workload nor a command, or a parameter is wrong.
pub fn workload(arguments: &RaceArguments) -> Result<Option<Asked>, Failure> {
    match &arguments.workload {
        Some(name) => Asked::parse(name, &arguments.command, arguments.quick).map(Some),
        None if arguments.command.is_empty() => Err(Failure::usage(
            "there is no command to race; write: heapdrome race -- COMMAND, or -w WORKLOAD",
        )),
        None => Ok(None),
    }
}

fn make(wanted: Wanted<'_>, folders: &Folders, interrupt: &AtomicBool) -> Result<Planned, Failure> {
    if let Some(workload) = wanted.workload {
        workload.check_program()?;
    }
    let (entrants, mut notes) = entrants(wanted.allocators, wanted.baseline, folders)?;
    interrupt::check(interrupt)?;
    let mut options = wanted.options;
    let mut command = wanted.command.to_vec();
    let ready = wanted.workload.map(|one| one.ready(folders)).transpose()?;
    if let (Some(asked), Some(ready)) = (wanted.workload, &ready) {
        options.workload = Some(asked.line());
        ready.apply(&mut options);
        command.clone_from(&ready.command);
        notes.extend(ready.notes.iter().cloned());
        let metrics = options.metrics.iter().map(|metric| metric.name.clone());
        check_judged(&options.judged, metrics)?;
    }
    let plan = Plan {
        command,
        asked: wanted.asked,
        part: wanted.part,
        started_in: current_folder()?,
        started: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        notes,
        entrants,
        seed: wanted.seed,
        options,
        stopping: wanted.stopping,
        alpha: ALPHA,
    };
    Ok(Planned {
        plan,
        workload: ready,
    })
}

/// The folder in which heapdrome runs.
///
/// # Errors
/// When it is gone.
pub fn current_folder() -> Result<PathBuf, Failure> {
    std::env::current_dir()
        .map_err(|error| Failure::Machine(format!("cannot tell the current folder: {error}")))
}

/// What the workload of a race that is taken up again keeps locked.
///
/// # Errors
/// When it can no longer be had.
pub fn workload_again(line: Option<&str>, folders: &Folders) -> Result<Option<Ready>, Failure> {
    let asked = line.map(Asked::from_line).transpose()?;
    asked.map(|asked| asked.ready(folders)).transpose()
}

/// A seed where none is asked for.
pub fn seed_from_clock() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(1, |since| since.as_nanos() as u64)
}
