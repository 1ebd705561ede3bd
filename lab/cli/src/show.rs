//! `heapdrome show`: the table of a saved result.

use heapdrome_record::{Saved, read_saved};

use crate::arguments::ShowArguments;
use crate::destinations::Destinations;
use crate::failure::Failure;
use crate::folders::Folders;
use crate::output;

/// Prints the table again, and writes it in other forms if asked to.
///
/// # Errors
/// When the result cannot be read, or a file cannot be written or is the result itself.
pub fn show(arguments: &ShowArguments) -> Result<(), Failure> {
    let saved = read_saved(&arguments.result).map_err(Failure::usage)?;
    let output = &arguments.output;
    Destinations::of(output).check(&[&arguments.result])?;
    let redaction = match output.redact {
        true => Some(Folders::find()?.redaction()),
        false => None,
    };
    match saved {
        Saved::Race(result) => output::publish(&result, output, redaction.as_ref()),
        Saved::Collection(races) => output::publish_collection(&races, output, redaction.as_ref()),
    }
}
