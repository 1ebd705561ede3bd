//! Records the trace of a recipe into a folder.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use heapdrome_packages::{Cache, quoted};
use heapdrome_system::sha256_of_file;
use heapdrome_trace::Reader;
use tempfile::TempDir;

use crate::child::Running;
use crate::error::at;
use crate::manifest::{Entry, readable};
use crate::recipe::{MOST_OPERATIONS, Recipe, Size};
use crate::work::{Work, of_program};
use crate::{LibraryError, script, server, shorten};

/// Request for the recording of a trace.
pub struct Request<'a> {
    /// Recipe that describes the program's run.
    pub recipe: &'a Recipe,
    /// Length of the recorded run.
    pub size: Size,
    /// Path of the `heapdrome` executable that records the trace.
    pub heapdrome: &'a Path,
    /// The version of that executable.
    pub version: &'a str,
    /// Cache that contains the inputs of programs, and the flag that interrupts the recording.
    pub cache: &'a Cache,
    /// Folder into which the trace is written.
    pub folder: &'a Path,
    /// Whether to replace an existing trace.
    pub force: bool,
}

/// Step of [`record`], reported when the step begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Preparing the program and its input.
    Preparing(heapdrome_programs::Event),
    /// Running the program under the recorder.
    Recording {
        /// The program and its version.
        program: String,
    },
}

impl Size {
    /// Returns the time limit of the recorded run.
    fn limit(self) -> Duration {
        match self {
            Self::Small => Duration::from_secs(120),
            Self::Full => Duration::from_secs(1200),
        }
    }
}

/// Records a trace as `NAME.trace`. All processes of the recording end before this function
/// returns, and no file of that name appears before the trace is complete.
///
/// # Errors
/// If the program is not installed, fails or takes too long; if the user interrupts; if a file
/// cannot be read or written; or if the trace exists and `force` is false.
pub fn record(
    request: &Request<'_>,
    on_event: &mut dyn FnMut(Event),
) -> Result<Entry, LibraryError> {
    let folder = request.folder;
    let staging = TempDir::new_in(folder).map_err(at(folder))?;
    let work = prepare(request, staging.path(), on_event)?;
    on_event(Event::Recording {
        program: work.program.clone(),
    });
    let whole = staging.path().join("whole.trace");
    run(request, &work, &whole, &staging.path().join("number"))?;
    let short = staging.path().join("short.trace");
    let cut_at = match request.size {
        Size::Small => shorten::shorten(&whole, MOST_OPERATIONS, &short)?,
        Size::Full => None,
    };
    let trace = if cut_at.is_some() { short } else { whole };
    let entry = Entry {
        cut_at: cut_at.map(|time| time.0),
        ..entry(request, &work, &trace)?
    };
    place(&trace, &folder.join(request.recipe.file()), request.force)?;
    Ok(entry)
}

impl Recipe {
    /// Returns the name of the trace's file.
    #[must_use]
    pub fn file(&self) -> PathBuf {
        PathBuf::from(format!("{}.trace", self.name))
    }
}

fn prepare(
    request: &Request<'_>,
    place: &Path,
    on_event: &mut dyn FnMut(Event),
) -> Result<Work, LibraryError> {
    let (recipe, size, cache) = (request.recipe, request.size, request.cache);
    match (&recipe.program, &recipe.script) {
        (Some(program), _) => {
            let mut say = |event| on_event(Event::Preparing(event));
            of_program(program, size, cache, &mut say)
        }
        (None, Some(script)) => script::prepare(recipe, script, size, place, cache.interrupt()),
        (None, None) => Err(LibraryError::Failed {
            step: "its preparation",
            reason: "the recipe is empty".to_owned(),
        }),
    }
}

/// Runs the program under `heapdrome record` in a separate process. The recorder waits for all
/// children of its own process, so the server's load must be a child of this process instead.
fn run(
    request: &Request<'_>,
    work: &Work,
    trace: &Path,
    number: &Path,
) -> Result<(), LibraryError> {
    let (limit, interrupt) = (request.size.limit(), request.cache.interrupt());
    let recorded = match &work.server {
        Some(server) => server::command(server, number),
        None => work.command.clone(),
    };
    let mut command = Command::new(request.heapdrome);
    command.args(["record", "-o"]).arg(trace).arg("--");
    command.args(recorded).current_dir(&work.directory);
    command.envs(&work.environment);
    let recording = Running::start("the recording", command)?;
    if let Some(server) = &work.server {
        let loaded = server::load(work, server, number, &recording, (limit, interrupt));
        if let Err(error) = loaded {
            recording.stop();
            return Err(error);
        }
    }
    recording.finish(limit, interrupt).map(|_| ())
}

fn entry(request: &Request<'_>, work: &Work, trace: &Path) -> Result<Entry, LibraryError> {
    let file = std::fs::File::open(trace).map_err(at(trace))?;
    let bytes = file.metadata().map_err(at(trace))?.len();
    let reader = Reader::new(file)?;
    let began = SystemTime::UNIX_EPOCH + Duration::from_nanos(reader.recording().began);
    let command: Vec<_> = match &work.server {
        Some(server) => vec![server.serve.clone()],
        None => work.command.iter().map(|word| quoted(word)).collect(),
    };
    Ok(Entry {
        name: request.recipe.name.clone(),
        size: request.size,
        program: work.program.clone(),
        command: command.join(" "),
        date: humantime::format_rfc3339_seconds(began).to_string(),
        heapdrome: request.version.to_owned(),
        operations: shorten::operations(trace)?,
        cut_at: None,
        bytes,
        sha256: sha256_of_file(trace).map_err(|source| LibraryError::Failed {
            step: "reading the trace",
            reason: source.to_string(),
        })?,
    })
}

/// Gives a complete trace its final name.
fn place(trace: &Path, to: &Path, force: bool) -> Result<(), LibraryError> {
    readable(trace)?;
    match force {
        true => std::fs::rename(trace, to).map_err(at(to)),
        // Unlike a rename, creating a link fails if a file has this name.
        false => std::fs::hard_link(trace, to).map_err(at(to)),
    }
}
