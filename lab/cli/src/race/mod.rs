//! `heapdrome race`: from the command line to the verdict.

mod options;
mod placeholders;
mod planning;
mod resuming;
mod stopping;
mod sweep;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use heapdrome_engine::race::{self as engine, Contest, Ended, Interrupted, LATEST};

use crate::arguments::{OutputArguments, RaceArguments, is_stdout};
use crate::destinations::Destinations;
use crate::failure::Failure;
use crate::folders::Folders;
use crate::output::Extent;
use crate::{interrupt, output};

use resuming::TakenUp;

pub use resuming::origin;

/// Runs a race, or goes on with one, and reports what came of it.
///
/// # Errors
/// With the exit status that `heapdrome --help` documents; whatever was measured until then has
/// been printed and written.
pub fn race(arguments: &RaceArguments) -> Result<(), Failure> {
    Destinations::of(&arguments.output).check(&[])?;
    let interrupt = interrupt::flag()?;
    let folders = Folders::find()?.interrupted_by(&interrupt);
    if arguments.is_sweep() {
        return sweep::sweep(arguments, &folders, &interrupt);
    }
    let interrupted = match arguments.resume.as_deref() {
        None => None,
        Some(name) => Some(engine::find(
            name,
            arguments.stopping.is_given(),
            &folders,
            origin,
        )?),
    };
    if let Some(Interrupted::Sweep(whole)) = interrupted {
        return sweep::go_on(whole, arguments, &folders, &interrupt);
    }
    let _hold = folders.cache.hold().map_err(Failure::machine)?;
    let TakenUp {
        mut contest,
        workload: _workload,
        output: wanted,
    } = match &interrupted {
        Some(Interrupted::Race(folder)) => {
            resuming::take_up(folder, arguments, &folders, interrupt)?
        }
        _ => started(arguments, &folders, interrupt)?,
    };
    let ended = contest.run();
    let result = contest.result(&ended);
    contest.close();
    let redaction = Some(folders.redaction());
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
    engine::outcome(ended, &result)
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
fn started(
    arguments: &RaceArguments,
    folders: &Folders,
    interrupt: Arc<AtomicBool>,
) -> Result<TakenUp, Failure> {
    let planned = planning::planned(arguments, folders, &interrupt)?;
    Ok(TakenUp {
        contest: Contest::start(folders, planned.plan, interrupt)?,
        workload: planned.workload,
        output: arguments.output.clone(),
    })
}
