//! The paging lab at work: opened, with swap and limits made for it, and its cells run in rounds.

mod cells;
mod holding;
mod opened;

use heapdrome_paging::Error;

use crate::failure::Failure;

pub use cells::{Cells, outcome};
pub use holding::{holdings, rivals_of, unbuilt};
pub use opened::{Opened, SwapWish, ledger};

/// Converts an error of the lab into a failure of the work.
pub fn failure(error: Error) -> Failure {
    match error {
        Error::Interrupted => Failure::Interrupted,
        error => Failure::machine(error),
    }
}

/// Processors that the scheduler may use for this process.
#[must_use]
pub fn processors() -> usize {
    heapdrome_machine::processors_in_order().len()
}
