//! `heapdrome trace check`: measures the fidelity of a trace's replay to the recorded program.

use heapdrome_engine::check::{CheckRequest, check as run, outcome};
use heapdrome_engine::workload::trace;
use heapdrome_engine::{Engine, fidelity};
use heapdrome_schema::{Nanoseconds, Options, Stopping};

use super::Source;
use crate::arguments::trace::CheckArguments;
use crate::destinations::Destinations;
use crate::failure::Failure;
use crate::{output, progress, race};

/// Default number of rounds.
const ROUNDS: u32 = 12;

/// Number of rounds of `--quick`, the minimum for intervals.
const QUICK_ROUNDS: u32 = 5;

/// Number of races that share `--max-time`.
const RACES: u32 = 3;

/// Allocator of a recording for which none was requested.
const SYSTEM: &str = "system";

/// Races the program and its replays, and reports the comparison.
///
/// # Errors
/// When an option, the trace or the command is unusable, a race cannot continue, or the replay
/// misses its program in a property.
pub fn check(arguments: &CheckArguments) -> Result<(), Failure> {
    Destinations::of(&arguments.output).check(&[&arguments.trace])?;
    if let trace::Source::Carried(_) = trace::Source::named(&arguments.trace)? {
        return Err(Failure::usage(
            "a built-in trace cannot be checked; record the program and name that trace",
        ));
    }
    let source = Source::open(&arguments.trace)?;
    let recorded = match source.reader.recording().allocator.as_str() {
        "" => SYSTEM.to_owned(),
        name => name.to_owned(),
    };
    let request = CheckRequest {
        trace: std::path::absolute(&arguments.trace).map_err(Failure::usage)?,
        process: arguments.process,
        touch: arguments.touch.unwrap_or_default(),
        command: arguments.command.clone(),
        allocators: arguments.allocators.clone(),
        recorded,
        options: options(arguments)?,
        stopping: stopping(arguments),
        seed: arguments.seed,
        asked: std::env::args().skip(1).collect(),
    };
    let engine = progress::engine()?;
    let check = run(&request, &engine)?;
    let kept = fidelity::path(&request.trace);
    output::tell(format_args!("kept in {}", kept.display()));
    let redaction = Some(Engine::silent()?.folders.redaction());
    let published = output::publish_collection(&check, &arguments.output, redaction.as_ref());
    published.and_then(|()| outcome(&check))
}

/// Returns the settings of each run. Refuses options that a check does not support.
fn options(arguments: &CheckArguments) -> Result<Options, Failure> {
    let runs = &arguments.runs;
    let refused = [
        ("--setup", runs.setup.is_some()),
        ("--cleanup", runs.cleanup.is_some()),
        ("--unproven", runs.unproven),
        ("--memory-runs 0", runs.memory_runs == 0),
    ];
    match refused.into_iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(Failure::Usage(format!(
            "trace check does not take {option}: its races take turns, and need a proof and a run that \
             watches memory"
        ))),
        None => race::run_options(runs),
    }
}

/// Returns the stopping rule of each race. All races run the same number of rounds, unless
/// `--max-time` ends one earlier.
fn stopping(arguments: &CheckArguments) -> Stopping {
    let usual = match arguments.quick {
        true => QUICK_ROUNDS,
        false => ROUNDS,
    };
    let max_time = arguments.max_time.map(|time| time / RACES);
    Stopping {
        min_rounds: QUICK_ROUNDS,
        max_rounds: arguments.rounds.unwrap_or(usual),
        max_time: max_time.map(Nanoseconds::from),
        ..Stopping::default()
    }
}
