//! `heapdrome race`: from the command line to the verdict.

mod options;
mod placeholders;
mod planning;
mod resuming;
mod stopping;
mod sweep;

use heapdrome_engine::Engine;
use heapdrome_engine::race::{Contest, Ended, Interrupted, LATEST, find, outcome};

use crate::arguments::{OutputArguments, RaceArguments, is_stdout};
use crate::destinations::Destinations;
use crate::failure::Failure;
use crate::output::Extent;
use crate::{output, progress};

use resuming::TakenUp;

pub use resuming::origin;

/// Runs a race, or goes on with one, and reports what came of it.
///
/// # Errors
/// With the exit status that `heapdrome --help` documents; whatever was measured until then has
/// been printed and written.
pub fn race(arguments: &RaceArguments) -> Result<(), Failure> {
    Destinations::of(&arguments.output).check(&[])?;
    let engine = progress::engine()?;
    if arguments.is_sweep() {
        return sweep::sweep(arguments, &engine);
    }
    let interrupted = match arguments.resume.as_deref() {
        None => None,
        Some(name) => Some(find(name, arguments.stopping.is_given(), &engine, origin)?),
    };
    if let Some(Interrupted::Sweep(whole)) = interrupted {
        return sweep::go_on(whole, arguments, &engine);
    }
    let _hold = engine.folders.cache.hold().map_err(Failure::machine)?;
    let TakenUp {
        mut contest,
        workload: _workload,
        output: wanted,
    } = match &interrupted {
        Some(Interrupted::Race(folder)) => resuming::take_up(folder, arguments, &engine)?,
        _ => started(arguments, &engine)?,
    };
    let ended = contest.run();
    let result = contest.result(&ended);
    contest.close();
    let redaction = Some(engine.folders.redaction());
    let has_answer = match &ended {
        Ok(Ended::Done(_)) => true,
        Err(Failure::Interrupted) => result.rounds > 0,
        // One line says it all.
        _ => false,
    };
    match has_answer {
        true => output::publish(
            &result,
            Extent::Brief(&shown_as(&wanted)),
            &wanted,
            redaction.as_ref(),
        )?,
        false => output::save(&result, &wanted, redaction.as_ref())?,
    }
    if matches!(ended, Err(Failure::Interrupted)) {
        let name = contest.name();
        output::tell(format_args!("go on with: heapdrome race --resume {name}"));
    }
    outcome(ended, &result)
}

/// What `heapdrome show` finds the result of the race under that has just ended.
fn shown_as(output: &OutputArguments) -> String {
    let file = output.json.as_deref().filter(|path| !is_stdout(path));
    file.map_or_else(
        || LATEST.to_owned(),
        |path| path.to_string_lossy().into_owned(),
    )
}

/// A race that begins.
fn started(arguments: &RaceArguments, engine: &Engine) -> Result<TakenUp, Failure> {
    let planned = planning::planned(arguments, engine)?;
    Ok(TakenUp {
        contest: Contest::start(engine, planned.plan)?,
        workload: planned.workload,
        output: arguments.output.clone(),
    })
}
