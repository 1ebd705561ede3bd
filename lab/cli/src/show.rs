//! `heapdrome show`: the table of a saved result.

use heapdrome_record::{Saved, read_saved};

use crate::arguments::ShowArguments;
use crate::failure::Failure;
use crate::folders::Folders;
use crate::output;
use crate::report::refuse_own_source;

/// Prints the table again, and writes it in other forms if asked to.
///
/// # Errors
/// When the result cannot be read, or a file cannot be written or is the result itself.
pub fn show(arguments: &ShowArguments) -> Result<(), Failure> {
    let saved = read_saved(&arguments.result).map_err(Failure::usage)?;
    let output = &arguments.output;
    for path in [&output.json, &output.csv, &output.markdown]
        .into_iter()
        .flatten()
    {
        refuse_own_source(path, std::iter::once(arguments.result.as_path()))?;
    }
    output::check_writable(output)?;
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
