//! From a request to a plan: every name looked up, every missing allocator built.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use heapdrome_record::{Options, Part, Plan, Stopping};

use super::entrants::entrants;
use super::options::check_judged;
use crate::engine::Engine;
use crate::failure::Failure;
use crate::workload::{Asked, Ready};

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
pub struct Wanted<'a> {
    /// The command and its arguments, where no workload races.
    pub command: &'a [String],
    /// The workload that races.
    pub workload: Option<&'a Asked>,
    /// Names, paths or groups of allocators; the baseline need not be among them.
    pub allocators: &'a [String],
    /// The allocator that the others are compared with.
    pub baseline: &'a str,
    /// How each run is made; what the workload needs is added.
    pub options: Options,
    /// When the race stops.
    pub stopping: Stopping,
    /// The seed of the order of rounds and of every other draw.
    pub seed: u64,
    /// heapdrome's own arguments, by which the race was asked for.
    pub asked: Vec<String>,
    /// The cell of a sweep that the race is.
    pub part: Option<Part>,
}

/// Makes the plan: every name is looked up, and every missing allocator is built.
///
/// # Errors
/// When an option, a name or a file is wrong, or an allocator that was asked for cannot be built.
pub fn plan(wanted: Wanted<'_>, engine: &Engine) -> Result<Planned, Failure> {
    if let Some(workload) = wanted.workload {
        workload.check_program()?;
    }
    let (entrants, mut notes) = entrants(wanted.allocators, wanted.baseline, engine)?;
    engine.check()?;
    let mut options = wanted.options;
    let mut command = wanted.command.to_vec();
    let ready = wanted.workload.map(|one| one.ready(engine)).transpose()?;
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
pub fn workload_again(line: Option<&str>, engine: &Engine) -> Result<Option<Ready>, Failure> {
    let asked = line.map(Asked::from_line).transpose()?;
    asked.map(|asked| asked.ready(engine)).transpose()
}

/// A seed where none is asked for.
pub fn seed_from_clock() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(1, |since| since.as_nanos() as u64)
}
