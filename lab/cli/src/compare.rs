//! `heapdrome compare`: what changed from one result to another.

use heapdrome_engine::compare::{self as engine, outcome};
use heapdrome_record::{Changes, changes_to_json};
use heapdrome_report::{changes_markdown, changes_text};

use crate::arguments::CompareArguments;
use crate::destinations::Destinations;
use crate::failure::Failure;
use crate::folders::Folders;
use crate::{output, sources};

/// Compares two results, and judges the conditions under which it fails.
///
/// # Errors
/// [`Failure::Usage`] when a file or a condition is wrong or the results cannot be compared;
/// [`Failure::Entrant`] when a condition is confirmed, after everything has been printed.
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
    let text = changes_text(changes, output::terminal());
    let mut done = output::print_beside(&Destinations::of(&output), text.as_bytes());
    if let Some(path) = &output.json {
        let bytes = changes_to_json(changes).map_err(Failure::machine)?;
        done = done.and(output::write_one(path, bytes, &output, redaction.as_ref()));
    }
    if let Some(path) = &output.markdown {
        let bytes = changes_markdown(changes).into_bytes();
        done = done.and(output::write_one(path, bytes, &output, redaction.as_ref()));
    }
    done
}
