//! `heapdrome race`: runs or continues a race or a sweep, and reports the result.

mod options;
mod placeholders;
mod plan;
mod resume;
mod stop;
mod sweep;

use heapdrome_engine::Engine;
use heapdrome_engine::race::{Contest, Ended, Interrupted, LATEST, find, outcome};

use crate::arguments::{OutputArguments, RaceArguments, is_stdout};
use crate::destinations::Destinations;
use crate::failure::Failure;
use crate::output::Extent;
use crate::{output, progress};

use resume::TakenUp;

pub use options::run_options;
pub use resume::origin;

/// Runs or continues a race or a sweep, and reports its result.
///
/// # Errors
/// Returns an error with the exit status that `heapdrome --help` documents. All measurements until
/// then have been written. They have also been printed if the race ended or was interrupted after a
/// round.
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
        Some(Interrupted::Race(folder)) => resume::take_up(folder, arguments, &engine)?,
        _ => started(arguments, &engine)?,
    };
    let ended = contest.run();
    let result = contest.result(&ended);
    contest.close();
    let redaction = Some(engine.folders.redaction());
    let has_answer = match &ended {
        Ok(Ended::Done(_)) => true,
        Err(Failure::Interrupted) => result.rounds > 0,
        // After any other end, the race has no valid answer, so only the error message is printed.
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
        output::tell(format_args!(
            "continue with: heapdrome race --resume {name}"
        ));
    }
    outcome(ended, &result)
}

/// Returns the name under which `heapdrome show` finds the result of this race.
fn shown_as(output: &OutputArguments) -> String {
    let file = output.json.as_deref().filter(|path| !is_stdout(path));
    file.map_or_else(
        || LATEST.to_owned(),
        |path| path.to_string_lossy().into_owned(),
    )
}

/// Plans a new race, and creates its journal.
fn started(arguments: &RaceArguments, engine: &Engine) -> Result<TakenUp, Failure> {
    let planned = plan::planned(arguments, engine)?;
    Ok(TakenUp {
        contest: Contest::start(engine, planned.plan)?,
        workload: planned.workload,
        output: arguments.output.clone(),
    })
}
