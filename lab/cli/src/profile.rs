//! `heapdrome profile`: summarises a recorded program's requests to its allocator.

use std::io::Read;
use std::path::Path;

use heapdrome_engine::workload::trace::{built_in, open};
use heapdrome_profile::{Profile, profile as read_profile};
use heapdrome_report::{Csv, Exporter, Perfetto, Pprof, ReportError, profile_page};
use heapdrome_schema::{compressed_if_named, is_compressed, is_stdin, source_name};
use heapdrome_symbols::DEBUG_FOLDER;
use heapdrome_trace::{Reader, TraceError};

use crate::arguments::{ProfileArguments, is_stdout};
use crate::destinations::{Destinations, refuse_overwriting};
use crate::failure::Failure;
use crate::output::{self, Form};

/// Prints the profile of a trace, and writes it in the requested formats.
///
/// # Errors
/// Returns [`Failure::Usage`] if the trace cannot be read, if an output is the trace or another
/// output, or if an output exists and `--force` is not set. Returns [`Failure::Machine`] if an
/// output cannot be written. All outputs are checked first; if one fails afterwards, the others are
/// still written.
pub fn profile(arguments: &ProfileArguments) -> Result<(), Failure> {
    let destinations = destinations(arguments);
    destinations.check(&[&arguments.trace])?;
    let files = [
        &arguments.output,
        &arguments.pprof,
        &arguments.perfetto,
        &arguments.csv,
    ];
    for path in files.into_iter().flatten() {
        refuse_overwriting(path, arguments.force || is_stdout(path))?;
    }
    let mut profile = read(&arguments.trace)?;
    profile.name_code(Path::new(DEBUG_FOLDER));
    let text = output::terminal()
        .export(&profile)
        .map_err(Failure::machine)?;
    let mut outcome = output::print_beside(&destinations, &text);
    let forms: [Form<'_>; 4] = [
        (arguments.output.as_deref(), &|| profile_page(&profile)),
        (arguments.pprof.as_deref(), &|| Pprof.export(&profile)),
        (arguments.perfetto.as_deref(), &|| Perfetto.export(&profile)),
        (arguments.csv.as_deref(), &|| Csv.export(&profile)),
    ];
    for (path, form) in forms {
        if let Some(path) = path {
            outcome = outcome.and(write(path, form));
        }
    }
    outcome
}

fn destinations(arguments: &ProfileArguments) -> Destinations<'_> {
    let empty = Destinations::none();
    empty
        .and("--output", arguments.output.as_deref())
        .and("--pprof", arguments.pprof.as_deref())
        .and("--perfetto", arguments.perfetto.as_deref())
        .and("--csv", arguments.csv.as_deref())
}

/// Writes one file, and reports its path unless it is standard output.
fn write(path: &Path, form: &dyn Fn() -> Result<Vec<u8>, ReportError>) -> Result<(), Failure> {
    let mut bytes = form().map_err(Failure::machine)?;
    if !is_compressed(&bytes) {
        bytes = compressed_if_named(path, bytes).map_err(Failure::machine)?;
    }
    output::write(path, &bytes)?;
    if !is_stdout(path) {
        output::tell(format!("wrote {}", path.display()));
    }
    Ok(())
}

/// Profiles the trace in a file, or in standard input.
fn read(path: &Path) -> Result<Profile, Failure> {
    if is_stdin(path) {
        return profiled(path, std::io::stdin().lock());
    }
    let unreadable = |why: &dyn std::fmt::Display| {
        Failure::Usage(format!("cannot read {}: {why}", path.display()))
    };
    let file = open(path)?;
    let about = file.metadata().map_err(|error| unreadable(&error))?;
    if about.is_dir() {
        return Err(unreadable(&"it is a folder; name a trace in it"));
    }
    if about.is_file() && about.len() == 0 {
        return Err(Failure::Usage(format!("{} is empty", path.display())));
    }
    let mut profile = profiled(path, file)?;
    if let Some(entry) = built_in(path) {
        let words = shlex::split(&entry.command);
        profile.recording.command = words.unwrap_or_else(|| vec![entry.command.clone()]);
    }
    Ok(profile)
}

fn profiled(path: &Path, source: impl Read) -> Result<Profile, Failure> {
    let name = source_name(path).display();
    Reader::new(source)
        .and_then(read_profile)
        .map_err(|error| match error {
            TraceError::NotATrace => Failure::Usage(format!("{name} is not a trace of heapdrome")),
            TraceError::Io(error) => Failure::Usage(format!("cannot read {name}: {error}")),
            other => Failure::Usage(format!("cannot profile {name}: {other}")),
        })
}
