//! Reads the saved results that a command line names.

use std::path::Path;

use heapdrome_engine::Engine;
use heapdrome_engine::race::{LATEST, kept};
use heapdrome_schema::{ReadError, Saved, is_stdin, read_saved, source_name};

use crate::failure::Failure;
use crate::{output, program, race};

/// Refuses to read standard input twice, because it contains only one result.
///
/// # Errors
/// Returns an error if standard input is named twice.
pub fn refuse_stdin_twice(results: &[&Path]) -> Result<(), Failure> {
    match results.iter().filter(|path| is_stdin(path)).count() {
        0 | 1 => Ok(()),
        _ => Err(Failure::usage(
            "- is given twice, but standard input has only one result; name a file for the other",
        )),
    }
}

/// Reads the file of this name, or else the stored race of this name.
fn named(path: &Path) -> Result<Saved, Failure> {
    let is_name = !is_stdin(path) && path.components().count() == 1 && path.extension().is_none();
    if !is_name || path.exists() {
        return read_saved(path).map_err(Failure::usage);
    }
    let name = path.to_string_lossy();
    if let Some(result) = kept(&name, &Engine::silent()?, race::origin)? {
        return Ok(Saved::Race(Box::new(result)));
    }
    if name == LATEST {
        return Err(Failure::usage(
            "no race with a complete round is stored; run one with heapdrome race COMMAND",
        ));
    }
    Err(Failure::Usage(format!(
        "no such file or stored race: {}; `heapdrome show latest` shows the last race",
        program::one_line(&name)
    )))
}

/// Reads a result that contains measurements.
///
/// # Errors
/// Returns an error if the result cannot be read, or contains no measurement.
pub fn read_measured(path: &Path) -> Result<Saved, Failure> {
    let saved = named(path)?;
    refuse_nothing(path, &saved)?;
    Ok(saved)
}

/// Reads a result. Refuses only an empty collection, because a result without measurements may
/// explain their absence.
///
/// # Errors
/// Returns an error if the result cannot be read, or is a collection without any part.
pub fn read(path: &Path) -> Result<Saved, Failure> {
    let saved = named(path)?;
    refuse_untold(path, &saved)?;
    Ok(saved)
}

/// Reads one file of a folder. For JSON that is not a result, prints a line on standard error and
/// returns `None`.
///
/// # Errors
/// Returns the errors of [`read`] for a result.
pub fn read_among_others(path: &Path) -> Result<Option<Saved>, Failure> {
    match read_saved(path) {
        Err(error @ (ReadError::Foreign { .. } | ReadError::Comparison { .. })) => {
            output::tell(format!("left out: {error}"));
            Ok(None)
        }
        saved => {
            let saved = saved.map_err(Failure::usage)?;
            refuse_untold(path, &saved)?;
            Ok(Some(saved))
        }
    }
}

/// Refuses a collection that has no races, no claims, no tables and no other parts.
fn refuse_untold(path: &Path, saved: &Saved) -> Result<(), Failure> {
    match saved {
        Saved::Collection(all) if all.races.is_empty() && all.claims.is_empty() => {
            refuse_nothing(path, saved)
        }
        _ => Ok(()),
    }
}

fn refuse_nothing(path: &Path, saved: &Saved) -> Result<(), Failure> {
    let nothing = match saved {
        Saved::Race(result) => result.rounds == 0 || result.entrants.is_empty(),
        Saved::Collection(races) => {
            let empty = races.races.iter().all(|race| race.result.rounds == 0);
            // A search that an older heapdrome saved has tables, but neither searches nor claims.
            // Such a result is not empty.
            let tables_alone = races.claims.is_empty() && !races.tables.is_empty();
            let no_parts = races.misuse().is_empty()
                && races.ccdfs().is_empty()
                && races.searches().is_empty();
            empty && no_parts && !tables_alone
        }
    };
    if nothing {
        return Err(Failure::Usage(format!(
            "{} holds no complete round; race again",
            source_name(path).display()
        )));
    }
    Ok(())
}
