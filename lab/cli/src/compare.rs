//! `heapdrome compare`: reports the changes between two results.

use heapdrome_engine::compare::{self as engine, outcome};
use heapdrome_report::{Exporter, Json, Markdown};
use heapdrome_schema::Changes;

use crate::arguments::CompareArguments;
use crate::destinations::Destinations;
use crate::failure::Failure;
use crate::folders::Folders;
use crate::{output, sources};

/// Compares two results, and checks the conditions of `--fail-if`.
///
/// # Errors
/// Returns [`Failure::Usage`] if a file or a condition is invalid, or the results cannot be
/// compared. Returns [`Failure::Machine`] if an output cannot be written. Returns
/// [`Failure::Entrant`] if a condition is confirmed, after everything has been printed.
pub fn compare(arguments: &CompareArguments) -> Result<(), Failure> {
    let output = arguments.output();
    let paths = [&*arguments.old, &*arguments.new];
    Destinations::of(&output).check(&paths)?;
    sources::refuse_stdin_twice(&paths)?;
    let [old, new] = paths.map(sources::read_measured);
    let (old, new) = (old?, new?);
    let changes = engine::compare(
        (&arguments.old, &old),
        (&arguments.new, &new),
        &arguments.fail_if,
        arguments.machines_differ,
    )?;
    publish(&changes, arguments)?;
    outcome(&changes.conditions)
}

fn publish(changes: &Changes, arguments: &CompareArguments) -> Result<(), Failure> {
    let redaction = match arguments.redact {
        true => Some(Folders::find()?.redaction()),
        false => None,
    };
    let output = arguments.output();
    let text = output::terminal().export(changes);
    let text = text.map_err(Failure::machine)?;
    let printed = output::print_beside(&Destinations::of(&output), &text);
    let forms: [output::Form<'_>; 2] = [
        (output.json.as_deref(), &|| Json.export(changes)),
        (output.markdown.as_deref(), &|| Markdown.export(changes)),
    ];
    printed.and(output::write_forms(&forms, &output, redaction.as_ref()))
}
