//! `heapdrome race`: from the command line to the verdict.

mod as_is;
mod assembling;
mod cell;
mod contest;
mod deciding;
mod entrants;
mod evidence;
mod faults;
mod figures;
mod judging;
mod limits;
mod mattering;
mod options;
mod placeholders;
mod planning;
mod progress;
mod proofs;
mod proving;
mod resuming;
mod rounds;
mod same_work;
mod serving;
mod stopping;
mod store;
mod surroundings;
mod sweep;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use heapdrome_measure::MeasureError;
use heapdrome_record::{RaceResult, Status};

use crate::arguments::{OutputArguments, RaceArguments};
use crate::destinations::{Destinations, is_stdout};
use crate::failure::Failure;
use crate::folders::Folders;
use crate::output::Extent;
use crate::{interrupt, output};

use contest::{Contest, Ended};
use resuming::{Interrupted, TakenUp};

pub use cell::{CellRequest, Load, run_cell};
pub use deciding::Judge;
pub use figures::{Kind, factor};
pub use options::is_own_figure;
pub use options::usual_options;
pub use planning::seed_from_clock;
pub use proofs::not_served;
pub use proving::witness_failure;
pub use resuming::{LATEST, kept};
pub use store::ProofStore;

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
    let interrupted = resuming::find(arguments, &folders)?;
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
    outcome(ended, &result, contest.name())
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
    let planned = planning::plan(arguments, folders, &interrupt)?;
    Ok(TakenUp {
        contest: Contest::start(folders, planned.plan, interrupt)?,
        workload: planned.workload,
        output: arguments.output.clone(),
    })
}

/// Why a race without proofs does not end with status 0: nothing that reads it may take it for one
/// whose rows are proven.
const WITHOUT_PROOF: &str = "no proof was taken of who served malloc, so nothing is recommended";

/// The exit status of a race that has been reported.
fn outcome(ended: Result<Ended, Failure>, result: &RaceResult, name: &str) -> Result<(), Failure> {
    match ended {
        Err(Failure::Interrupted) => {
            output::tell(format_args!("go on with: heapdrome race --resume {name}"));
            Err(Failure::Interrupted)
        }
        Err(failure) => Err(failure),
        Ok(Ended::BaselineFailed(why) | Ended::DifferentWork(why)) => Err(Failure::Baseline(why)),
        Ok(Ended::NothingToRace(why)) => Err(Failure::Entrant(why)),
        Ok(Ended::Done(_)) => {
            let failed = |status| status != Status::Ok;
            let names: Vec<_> = result
                .entrants
                .iter()
                .filter(|entrant| failed(entrant.status))
                .map(|entrant| entrant.allocator.as_str())
                .collect();
            match names.as_slice() {
                [] if result.options.unproven => Err(Failure::Entrant(WITHOUT_PROOF.to_owned())),
                [] => Ok(()),
                names => Err(Failure::Entrant(format!(
                    "not in the race: {}",
                    names.join(", ")
                ))),
            }
        }
    }
}

/// A failure of the measuring room, by whose concern it is.
fn measure_failure(error: MeasureError) -> Failure {
    match error {
        MeasureError::Interrupted => Failure::Interrupted,
        MeasureError::CommandNotFound { .. }
        | MeasureError::NotExecutable { .. }
        | MeasureError::EmptyCommand
        | MeasureError::CannotPin { .. }
        | MeasureError::BadMetric { .. } => Failure::usage(error),
        other => Failure::machine(other),
    }
}
