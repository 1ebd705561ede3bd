//! Writes text to standard output and standard error, and results to files.

use std::io::{IsTerminal, Write};
use std::path::Path;

use heapdrome_engine::survive;
use heapdrome_report::{Brief, Csv, Exporter, Json, Markdown, ReportError, Terminal};
use heapdrome_schema::{
    Collection, RaceResult, Redaction, compressed_if_named, fill, stream_atomically,
    write_atomically,
};

use crate::arguments::{OutputArguments, is_stdout};
use crate::destinations::Destinations;
use crate::failure::Failure;

/// Maximum width of a table, and the width without a terminal.
const WIDTH: usize = 100;

/// Prints text unchanged. A closed pipe is not an error.
///
/// # Errors
/// Returns an error if standard output cannot be written for another reason, such as a full disk.
pub fn print(text: &[u8]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    printed(out.write_all(text).and_then(|()| out.flush()))
}

/// Converts an error of a write to standard output into a [`Failure`]. A closed pipe is not an
/// error.
///
/// # Errors
/// Returns the errors of [`print()`].
pub fn printed(outcome: std::io::Result<()>) -> Result<(), Failure> {
    match outcome {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::Machine(
            format!("cannot write to standard output: {error}"),
        )),
        _ => Ok(()),
    }
}

/// Prints text, unless standard output receives one of the files.
///
/// # Errors
/// Returns the errors of [`print()`].
pub fn print_beside(files: &Destinations<'_>, text: &[u8]) -> Result<(), Failure> {
    match files.take_stdout() {
        true => Ok(()),
        false => print(text),
    }
}

/// Prints a line on standard error. Ignores every error, because a closed standard error must not
/// end a race.
pub fn tell(text: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "heapdrome: {text}");
}

/// Prints a table or an estimate on standard error, so that standard output contains only the
/// result.
pub fn print_aside(table: &str) {
    let _ = writeln!(std::io::stderr(), "{table}");
}

/// Returns the format of text for standard output: as wide as the terminal, within limits, and
/// coloured only on a terminal and without `NO_COLOR`.
pub fn terminal() -> Terminal {
    let is_terminal = std::io::stdout().is_terminal();
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let columns = if is_terminal {
        usize::from(console::Term::stdout().size().1)
    } else {
        WIDTH
    };
    Terminal {
        width: columns.clamp(40, WIDTH),
        colour: is_terminal && !no_colour,
    }
}

/// Extent to which the result of a race is printed.
#[derive(Clone, Copy)]
pub enum Extent<'a> {
    /// The part that a reader needs to act. The string is the argument of `heapdrome show` that
    /// prints the rest.
    Brief(&'a str),
    /// Everything.
    Full,
}

/// Prints a race, and writes the requested files.
///
/// # Errors
/// Returns an error if the race cannot be formatted, or something cannot be written. A failed write
/// does not prevent the writing of the other files.
pub fn publish(
    result: &RaceResult,
    extent: Extent<'_>,
    output: &OutputArguments,
    redaction: Option<&Redaction>,
) -> Result<(), Failure> {
    let terminal = terminal();
    let text = match extent {
        Extent::Brief(name) => Brief { terminal, name }.export(result),
        Extent::Full => terminal.export(result),
    };
    let text = text.map_err(Failure::machine)?;
    let printed = print_beside(&Destinations::of(output), &text);
    let saved = save(result, output, redaction);
    printed.and(saved)
}

/// Writes the requested files of a race.
///
/// # Errors
/// Returns an error if a form cannot be created or written; all other files are still written.
pub fn save(
    result: &RaceResult,
    output: &OutputArguments,
    redaction: Option<&Redaction>,
) -> Result<(), Failure> {
    let forms: &[Form<'_>] = &[
        (output.json.as_deref(), &|| Json.export(result)),
        (output.csv.as_deref(), &|| Csv.export(result)),
        (output.markdown.as_deref(), &|| Markdown.export(result)),
    ];
    write_forms(forms, output, redaction)
}

/// Prints the tables of a collection, and writes the requested files.
///
/// # Errors
/// Returns an error if something cannot be written; all other files are still written.
pub fn publish_collection(
    collection: &Collection,
    output: &OutputArguments,
    redaction: Option<&Redaction>,
) -> Result<(), Failure> {
    let printed = print_collection(collection, &Destinations::of(output));
    let saved = save_collection(collection, output, redaction);
    printed.and(saved)
}

/// Prints the tables of a collection, unless standard output receives one of the files.
///
/// # Errors
/// Returns an error if the tables cannot be formatted, or standard output cannot be written.
pub fn print_collection(collection: &Collection, files: &Destinations<'_>) -> Result<(), Failure> {
    let text = terminal().export(collection).map_err(Failure::machine)?;
    print_beside(files, &text)
}

/// Writes the requested files of a collection.
///
/// # Errors
/// Returns an error if a form cannot be created or written; all other files are still written.
pub fn save_collection(
    collection: &Collection,
    output: &OutputArguments,
    redaction: Option<&Redaction>,
) -> Result<(), Failure> {
    let forms: &[Form<'_>] = &[
        (output.json.as_deref(), &|| Json.export(collection)),
        (output.csv.as_deref(), &|| samples(collection)),
        (output.markdown.as_deref(), &|| Markdown.export(collection)),
    ];
    write_forms(forms, output, redaction)
}

/// Writes the reports of all paging cells of a collection to `path`, if it is set.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub fn save_cells(collection: &Collection, path: Option<&Path>) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    let bytes = serde_json::to_vec(collection.paging_cells()).map_err(Failure::machine)?;
    write(path, &bytes)
}

/// Returns the samples of a collection as CSV. For a collection with searches for limits, the
/// samples are the tried limits; otherwise they are those of the races.
fn samples(collection: &Collection) -> Result<Vec<u8>, ReportError> {
    match collection.searches() {
        [] => Csv.export(collection),
        rows => Csv.export(&survive::samples(rows)),
    }
}

/// Refuses `--csv` for a result without samples. `what` names the kind of result.
///
/// # Errors
/// Returns an error if `--csv` was requested.
pub fn refuse_csv(output: &OutputArguments, what: &str) -> Result<(), Failure> {
    match output.csv {
        None => Ok(()),
        Some(_) => Err(Failure::Usage(format!(
            "a result of {what} has no samples for --csv; --json has its figures, and --markdown its \
             tables"
        ))),
    }
}

/// Optional output file, and the function that creates its bytes.
pub type Form<'a> = (
    Option<&'a Path>,
    &'a dyn Fn() -> Result<Vec<u8>, ReportError>,
);

/// Writes each requested form of a result to its file.
///
/// # Errors
/// Returns an error if a form cannot be created or written; all other files are still written.
pub fn write_forms(
    forms: &[Form<'_>],
    output: &OutputArguments,
    redaction: Option<&Redaction>,
) -> Result<(), Failure> {
    let mut outcome = Ok(());
    for (path, form) in forms {
        let Some(path) = path else { continue };
        let bytes = form().map_err(Failure::machine);
        let written = bytes.and_then(|bytes| write_one(path, bytes, output, redaction));
        outcome = outcome.and(written);
    }
    outcome
}

/// Writes one file, with folders replaced by variables on request, and compressed if its name ends
/// in `.gz`.
///
/// # Errors
/// Returns an error if the file cannot be written.
fn write_one(
    path: &Path,
    mut bytes: Vec<u8>,
    output: &OutputArguments,
    redaction: Option<&Redaction>,
) -> Result<(), Failure> {
    if let Some(redaction) = redaction.filter(|_| output.redact) {
        bytes = redaction
            .text(&String::from_utf8_lossy(&bytes))
            .into_bytes();
    }
    write(
        path,
        &compressed_if_named(path, bytes).map_err(Failure::machine)?,
    )
}

/// Writes a file atomically, or prints it if `path` means standard output. `make` writes the
/// content piece by piece, so the whole file is never in memory. A closed standard output is not an
/// error.
///
/// # Errors
/// When the file cannot be written, or `make` fails.
pub fn stream(
    path: &Path,
    make: impl FnOnce(&mut dyn Write) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if is_stdout(path) {
        return match fill(std::io::stdout().lock(), make) {
            Ok(made) => made,
            Err(error) => printed(Err(error)),
        };
    }
    stream_atomically(path, make).map_err(Failure::machine)?
}

/// Writes a file atomically, or prints it if `path` means standard output.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    match is_stdout(path) {
        true => print(bytes),
        false => write_atomically(path, bytes).map_err(Failure::machine),
    }
}
