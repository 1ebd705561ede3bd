//! Sessions of the paging lab: preparation, swap and limits, and the rounds of its cells.

mod cells;
mod holder;
mod opened;

use heapdrome_paging::Error;

use crate::failure::Failure;

pub use cells::{Cells, outcome};
pub use holder::{holdings, rivals_of, unbuilt};
pub use opened::{Opened, SwapWish, ledger};

/// Converts an error of the lab into an interruption or a failure of the machine.
pub fn failure(error: Error) -> Failure {
    match error {
        Error::Interrupted => Failure::Interrupted,
        error => Failure::machine(error),
    }
}

/// Returns the number of processors that the scheduler may use for this process.
#[must_use]
pub fn processors() -> usize {
    heapdrome_machine::processors_in_order().len()
}
