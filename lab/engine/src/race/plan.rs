//! Conversion of a request into a plan. It looks up every name, and builds the missing allocators.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use heapdrome_schema::{Options, Part, Plan, Stopping};

use super::entrants::entrants;
use super::options::check_judged;
use crate::engine::Engine;
use crate::failure::Failure;
use crate::workload::{Asked, Ready};

/// Plan of a race, with the locked resources that the race needs.
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// Workload of the race. Its locks are held while this value lives.
    pub workload: Option<Ready>,
}

/// Maximum probability that a race shows one or more false verdicts on its judged figures.
const ALPHA: f64 = 0.05;

/// Input for a plan.
pub struct Wanted<'a> {
    /// Command and its arguments, unless a workload races.
    pub command: &'a [String],
    /// Workload that races.
    pub workload: Option<&'a Asked>,
    /// Names, paths or groups of allocators. The baseline need not be among them.
    pub allocators: &'a [String],
    /// Allocator with which the others are compared.
    pub baseline: &'a str,
    /// Settings of each run. The workload's own settings are added.
    pub options: Options,
    /// Conditions under which the race ends.
    pub stopping: Stopping,
    /// Seed of the entrants' order in each round and of every other random draw.
    pub seed: u64,
    /// Arguments of heapdrome that requested the race.
    pub asked: Vec<String>,
    /// Cell of a sweep that this race fills.
    pub part: Option<Part>,
}

/// Makes the plan. Looks up every name, and builds the missing allocators.
///
/// # Errors
/// When an option, a name or a file is invalid, a requested allocator cannot be built, or the user
/// interrupts.
pub fn plan(wanted: Wanted<'_>, engine: &Engine) -> Result<Planned, Failure> {
    let early = ready_early(wanted.workload, engine)?;
    let (entrants, mut notes) = entrants(wanted.allocators, wanted.baseline, engine)?;
    engine.check()?;
    let mut options = wanted.options;
    let mut command = wanted.command.to_vec();
    let ready = match (early, wanted.workload) {
        (None, Some(asked)) => Some(asked.ready(engine)?),
        (early, _) => early,
    };
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

/// Checks the workload's program before any build. Prepares and returns the workload if it replays
/// a trace, because only compilation detects a damaged trace.
fn ready_early(workload: Option<&Asked>, engine: &Engine) -> Result<Option<Ready>, Failure> {
    let Some(workload) = workload else {
        return Ok(None);
    };
    workload.check_program()?;
    let is_trace = workload.is_trace();
    is_trace.then(|| workload.ready(engine)).transpose()
}

/// Returns the folder in which heapdrome runs.
///
/// # Errors
/// When the folder cannot be determined, for example because it no longer exists.
pub fn current_folder() -> Result<PathBuf, Failure> {
    std::env::current_dir()
        .map_err(|error| Failure::Machine(format!("cannot determine the current folder: {error}")))
}

/// Prepares the workload of a resumed race, and locks its resources.
///
/// # Errors
/// When this version does not know the workload, the workload cannot be prepared, or the user
/// interrupts.
pub fn workload_again(line: Option<&str>, engine: &Engine) -> Result<Option<Ready>, Failure> {
    let asked = line.map(Asked::from_line).transpose()?;
    asked.map(|asked| asked.ready(engine)).transpose()
}

/// Returns a seed from the clock, for races without an explicit seed.
pub fn seed_from_clock() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(1, |since| since.as_nanos() as u64)
}
