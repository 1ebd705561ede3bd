//! Races and sweeps, from the plan to the result, and their resumption.

mod as_is;
mod cell;
mod contest;
mod decided;
mod entrants;
mod evidence;
mod faults;
mod figures;
mod judge;
mod limits;
mod material;
mod options;
mod plan;
mod progress;
mod proofs;
mod prover;
mod result;
mod resume;
mod rounds;
mod rules;
mod same_work;
mod server;
mod store;
mod surroundings;
mod sweep;
mod turns;

use heapdrome_measure::MeasureError;
use heapdrome_schema::{RaceResult, Status};

use crate::failure::Failure;

pub use cell::{CellRequest, Load, run_cell};
pub use contest::{Contest, Ended};
pub use figures::{Kind, factor};
pub use judge::Judge;
pub use options::{JUDGED, check_command, check_judged, usual_options};
pub use plan::{Planned, Wanted, current_folder, plan, seed_from_clock, workload_again};
pub use proofs::not_served;
pub use prover::witness_failure;
pub use resume::{Interrupted, LATEST, Origin, ReadOrigin, announce, find, kept, refuse_old_sweep};
pub use store::ProofStore;
pub use sweep::{
    AskedWork, Sweep, SweepRequest, Whole, check_parameters, outcome as sweep_outcome,
};
pub use turns::in_turns;

/// Failure message of a race without proofs. The failure status keeps readers from mistaking the
/// race's rows for proven ones.
const WITHOUT_PROOF: &str =
    "no proof was taken of the object that served malloc, so nothing is recommended";

/// Returns heapdrome's outcome for a race. The report already contains the details.
///
/// # Errors
/// When the race failed or compared nothing, an entrant's row is invalid, or no proof was taken.
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

/// Converts an error of the measurer into an interruption, a failure of usage or, for any other
/// error, a failure of the machine.
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
