//! A race: from a plan to the verdict.

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
mod material;
mod options;
mod planning;
mod progress;
mod proofs;
mod proving;
mod resuming;
mod rounds;
mod rules;
mod same_work;
mod serving;
mod store;
mod surroundings;
mod sweep;

use heapdrome_measure::MeasureError;
use heapdrome_record::{RaceResult, Status};

use crate::failure::Failure;

pub use cell::{CellRequest, Load, run_cell};
pub use contest::{Contest, Ended};
pub use figures::{Kind, factor};
pub use judging::Judge;
pub use options::{JUDGED, check_command, check_judged, usual_options};
pub use planning::{Planned, Wanted, current_folder, plan, seed_from_clock, workload_again};
pub use proofs::not_served;
pub use proving::witness_failure;
pub use resuming::{
    Interrupted, LATEST, Origin, ReadOrigin, announce, find, kept, refuse_old_sweep,
};
pub use store::ProofStore;
pub use sweep::{
    AskedWork, Sweep, SweepRequest, Whole, check_parameters, outcome as sweep_outcome,
};

/// Why a race without proofs does not end with status 0: nothing that reads it may take it for one
/// whose rows are proven.
const WITHOUT_PROOF: &str = "no proof was taken of who served malloc, so nothing is recommended";

/// What a race that has been reported ends with.
///
/// # Errors
/// Unless the race is done and every entrant took part until its end, proven.
pub fn outcome(ended: Result<Ended, Failure>, result: &RaceResult) -> Result<(), Failure> {
    match ended {
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
