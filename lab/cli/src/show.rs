//! `heapdrome show`: prints a saved result, in brief or in full, or the records of one entrant, or
//! instructions for using the recommended allocator.

use heapdrome_report::Conclusion;
use heapdrome_schema::{RaceResult, Role, Saved};

use crate::arguments::ShowArguments;
use crate::destinations::Destinations;
use crate::failure::Failure;
use crate::folders::Folders;
use crate::output::Extent;
use crate::{allocators, output, program, sources};

/// Prints a saved result, and writes it in other forms on request.
///
/// # Errors
/// Returns an error if the result cannot be read, is empty or has no samples for `--csv`, if a file
/// cannot be written or is the result itself, if `--deploy` is requested for a collection, or if no
/// race has the requested entrant.
pub fn show(arguments: &ShowArguments) -> Result<(), Failure> {
    let saved = sources::read(&arguments.result)?;
    if let Some(name) = &arguments.entrant {
        return show_entrant(&saved, name);
    }
    let output = &arguments.output;
    Destinations::of(output).check(&[&arguments.result])?;
    if let Saved::Collection(one) = &saved
        && one.races.is_empty()
        && one.searches().is_empty()
    {
        output::refuse_csv(output, &program::one_line(&one.name))?;
    }
    let redaction = match output.redact {
        true => Some(Folders::find()?.redaction()),
        false => None,
    };
    let name = arguments.result.to_string_lossy();
    match saved {
        Saved::Race(result) if arguments.deploy => deploy(&result),
        Saved::Race(result) => {
            let extent = match arguments.full {
                true => Extent::Full,
                false => Extent::Brief(&name),
            };
            output::publish(&result, extent, output, redaction.as_ref())
        }
        Saved::Collection(_) if arguments.deploy => Err(Failure::usage(
            "--deploy is for the result of one race; this one has several races",
        )),
        Saved::Collection(races) => output::publish_collection(&races, output, redaction.as_ref()),
    }
}

/// Prints instructions for using the allocator that the race recommends.
fn deploy(result: &RaceResult) -> Result<(), Failure> {
    let conclusion = Conclusion::of(result);
    let text = match conclusion.taken() {
        Some(taken) => allocators::adoption(result, taken, &Folders::find()?),
        None => format!("Nothing to deploy. {conclusion}\n"),
    };
    output::print(text.as_bytes())
}

/// Prints everything that was recorded of one entrant, for every race in which it took part.
fn show_entrant(saved: &Saved, name: &str) -> Result<(), Failure> {
    let races: Vec<(Option<&str>, &RaceResult)> = match saved {
        Saved::Race(result) => vec![(None, &**result)],
        Saved::Collection(all) => {
            let races = all.races.iter();
            races
                .map(|one| (Some(one.cell.as_str()), &one.result))
                .collect()
        }
    };
    let width = output::terminal().width.min(WIDTH);
    let mut text = String::new();
    for (cell, result) in &races {
        let Some(evidence) = heapdrome_report::evidence(result, name, width) else {
            continue;
        };
        if !text.is_empty() {
            text.push('\n');
        }
        if let Some(cell) = cell {
            text.push_str(&format!("Cell {}: ", program::one_line(cell)));
        }
        text.push_str(&evidence);
    }
    if text.is_empty() {
        let rows = races.iter().flat_map(|(_, result)| &result.entrants);
        let rows = rows.filter(|row| row.role != Role::Twin);
        let mut names: Vec<_> = rows.map(|row| row.allocator.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        return Err(Failure::Usage(format!(
            "no such entrant: {} (the result has {})",
            program::one_line(name),
            program::one_line(&names.join(", "))
        )));
    }
    output::print(text.as_bytes())
}

/// Maximum width of the evidence of one row.
const WIDTH: usize = 80;
