//! `heapdrome trace`: summarises, checks, cuts, merges, exports and shrinks traces, and lists or
//! records those of well-known programs.

mod check;
mod export;
mod info;
mod library;
mod recorded_suite;
mod shrink;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use heapdrome_engine::workload::trace::open;
use heapdrome_trace::{Ending, Reader, Time, TraceError, cut, merge};

use crate::arguments::is_stdout;
use crate::arguments::trace::{CutArguments, MergeArguments, TraceAction, TraceOutput};
use crate::destinations::{Destinations, refuse_overwriting};
use crate::failure::Failure;
use crate::output;

/// Runs the requested action on traces.
///
/// # Errors
/// When a trace cannot be read, something cannot be written, or the action fails otherwise.
pub fn trace(action: &TraceAction) -> Result<(), Failure> {
    match action {
        TraceAction::Info { trace } => info::info(trace),
        TraceAction::Check(arguments) => check::check(arguments),
        TraceAction::Cut(arguments) => cut_one(arguments),
        TraceAction::Merge(arguments) => merge_all(arguments),
        TraceAction::Export(arguments) => export::export(arguments),
        TraceAction::Library(arguments) => library::library(arguments),
        TraceAction::Shrink(arguments) => shrink::shrink_one(arguments),
    }
}

/// A trace that a command line names.
struct Source<'a> {
    path: &'a Path,
    reader: Reader<File>,
}

impl<'a> Source<'a> {
    /// Opens a trace file, or a built-in trace, and reads its beginning.
    fn open(path: &'a Path) -> Result<Self, Failure> {
        if path.is_dir() {
            let told = format!("{} is a folder; name a trace", path.display());
            return Err(Failure::Usage(told));
        }
        let file = open(path)?;
        let reader = Reader::new(file).map_err(of(path))?;
        Ok(Self { path, reader })
    }

    /// Warns if the trace was cut off. Must be called after the trace was read to its end.
    fn warn_if_cut_off(&self) {
        if let Some(Ending::CutOff { offset }) = self.reader.ending() {
            output::tell(format!(
                "{} was cut off; it was read up to byte {offset}",
                self.path.display()
            ));
        }
    }
}

/// Returns a function that converts an error of the trace at `path` into a failure that names the
/// path.
fn of(path: &Path) -> impl Fn(TraceError) -> Failure {
    move |error| {
        Failure::Usage(match error {
            TraceError::NotATrace => format!("{} is not a trace of heapdrome", path.display()),
            TraceError::Io(error) => format!("cannot read {}: {error}", path.display()),
            other => format!("{}: {other}", path.display()),
        })
    }
}

/// Returns a failure that names one of several traces; it names none if the error concerns all of
/// them.
fn of_several(error: TraceError, paths: &[&Path]) -> Failure {
    match error {
        TraceError::Part { place, error } => of(paths[place])(*error),
        other => Failure::usage(other),
    }
}

/// Refuses an output file that is one of the traces, cannot be written or, without `force`, already
/// exists.
fn check_output(output: &Path, force: bool, traces: &[&Path]) -> Result<(), Failure> {
    if is_stdout(output) {
        return Ok(());
    }
    if output.is_dir() {
        let told = format!("{} is a folder; name a file", output.display());
        return Err(Failure::Usage(told));
    }
    if traces.iter().any(|trace| is_one_file(trace, output)) {
        return Err(Failure::Usage(format!(
            "{} is read; name another file to write",
            output.display()
        )));
    }
    refuse_overwriting(output, force)?;
    Destinations::one("--output", output).check(&[])
}

fn is_one_file(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    real(one).is_some_and(|file| real(other) == Some(file))
}

/// Writes a trace, and reports its path unless it is standard output.
fn write(
    output: &TraceOutput,
    make: impl FnOnce(&mut dyn Write) -> Result<(), Failure>,
) -> Result<(), Failure> {
    output::stream(&output.output, make)?;
    if !is_stdout(&output.output) {
        output::tell(format!("wrote {}", output.output.display()));
    }
    Ok(())
}

fn time(span: Duration) -> Time {
    Time(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
}

fn cut_one(arguments: &CutArguments) -> Result<(), Failure> {
    let (from, to) = (arguments.from, arguments.to.unwrap_or(Duration::MAX));
    if from >= to {
        return Err(Failure::usage("--from must be earlier than --to"));
    }
    let (path, output) = (&arguments.trace, &arguments.output);
    let mut source = Source::open(path)?;
    check_output(&output.output, output.force, &[path])?;
    write(output, |sink| {
        let written = cut(&mut source.reader, time(from), time(to), sink);
        written.map(|_| ()).map_err(of(path))
    })?;
    source.warn_if_cut_off();
    Ok(())
}

fn merge_all(arguments: &MergeArguments) -> Result<(), Failure> {
    let (traces, output) = (&arguments.traces, &arguments.output);
    let paths: Vec<&Path> = traces.iter().map(PathBuf::as_path).collect();
    let opened: Result<Vec<_>, _> = paths.iter().map(|path| Source::open(path)).collect();
    let mut readers: Vec<_> = opened?.into_iter().map(|source| source.reader).collect();
    check_output(&output.output, output.force, &paths)?;
    write(output, |sink| {
        let merged = merge(&mut readers, sink);
        merged
            .map(|_| ())
            .map_err(|error| of_several(error, &paths))
    })?;
    for (path, reader) in paths.into_iter().zip(readers) {
        Source { path, reader }.warn_if_cut_off();
    }
    Ok(())
}
