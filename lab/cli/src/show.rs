//! `heapdrome show`: the table of a saved result.

use heapdrome_record::{Saved, read_saved};

use crate::arguments::ShowArguments;
use crate::failure::Failure;
use crate::folders::Folders;
use crate::output;

/// Prints the table again, and writes it in other forms if asked to.
///
/// # Errors
/// When the result cannot be read or a file cannot be written.
pub fn show(arguments: &ShowArguments) -> Result<(), Failure> {
    let saved = read_saved(&arguments.result).map_err(Failure::usage)?;
    output::check_writable(&arguments.output)?;
    let redaction = match arguments.output.redact {
        true => Some(Folders::find()?.redaction()),
        false => None,
    };
    match saved {
        Saved::Race(result) => output::publish(&result, &arguments.output, redaction.as_ref()),
        Saved::Collection(races) => {
            output::publish_collection(&races, &arguments.output, redaction.as_ref())
        }
    }
}
