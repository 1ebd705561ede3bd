//! `heapdrome show`: the table of a saved result.

use heapdrome_record::Saved;

use crate::arguments::ShowArguments;
use crate::destinations::Destinations;
use crate::failure::Failure;
use crate::folders::Folders;
use crate::{output, program, sources};

/// Prints the table again, and writes it in other forms if asked to.
///
/// # Errors
/// When the result cannot be read, is empty or has no samples for `--csv`, or a file cannot be written or is
/// the result itself.
pub fn show(arguments: &ShowArguments) -> Result<(), Failure> {
    let saved = sources::read(&arguments.result)?;
    let output = &arguments.output;
    Destinations::of(output).check(&[&arguments.result])?;
    if let Saved::Collection(one) = &saved
        && one.races.is_empty()
        && one.survival.is_empty()
    {
        output::refuse_csv(output, &program::one_line(&one.name))?;
    }
    let redaction = match output.redact {
        true => Some(Folders::find()?.redaction()),
        false => None,
    };
    match saved {
        Saved::Race(result) => output::publish(&result, output, redaction.as_ref()),
        Saved::Collection(races) => output::publish_collection(&races, output, redaction.as_ref()),
    }
}
