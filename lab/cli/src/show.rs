//! `heapdrome show`: the table of a saved result.

use heapdrome_record::{RaceResult, Role, Saved};

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
    if let Some(name) = &arguments.entrant {
        return show_entrant(&saved, name);
    }
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

/// Prints all that was recorded of one entrant, in every race that it took part in.
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

/// The evidence of one row fits into as many columns.
const WIDTH: usize = 80;
