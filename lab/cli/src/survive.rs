//! `heapdrome survive`: finds the smallest memory limit under which a command still finishes, and
//! the command's slowdown there.

use heapdrome_engine::survive::{self as engine, SurviveRequest, outcome};

use crate::arguments::SurviveArguments;
use crate::destinations::Destinations;
use crate::failure::Failure;
use crate::{output, progress};

/// Searches for the smallest memory limit under each allocator, and prints the results.
///
/// # Errors
/// Returns an error if an allocator is unavailable, the command does not exist or fails without a
/// limit, no limit can be set, an output cannot be written, or the user interrupts. All results
/// until then have been printed and written.
pub fn survive(arguments: &SurviveArguments) -> Result<(), Failure> {
    let output = &arguments.output;
    Destinations::of(output).check(&[])?;
    let request = SurviveRequest {
        allocators: arguments.allocators.clone(),
        swap: arguments.make.wish(),
        runs: arguments.runs,
        precision: arguments.precision,
        patience: arguments.patience,
        command: arguments.command.clone(),
        asked: std::env::args().skip(1).collect(),
    };
    let site = progress::engine()?;
    let (collection, ran) = engine::survive(&request, &site)?;
    let redaction = site.folders.redaction();
    let published = output::publish_collection(&collection, output, Some(&redaction));
    ran.and(published.and_then(|()| outcome(collection.searches())))
}
