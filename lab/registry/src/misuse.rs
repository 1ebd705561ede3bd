//! Deliberate misuse of an allocator, and the allocator's response.

use std::process::Command;
use std::time::Duration;

use heapdrome_conformance::{BASIC, Header, OTHER_ALLOCATOR, Source};
use heapdrome_packages::Cache;
use heapdrome_schema::{Bytes, Ending, Entrant, MisuseOutcome, MisuseRun};
use heapdrome_system::FileError;
use heapdrome_system::child::{self, Ended, Limits};

use crate::RegistryError;
use crate::compiled::{Compiled, PAUSE, Set};

mod output;

const LIMITS: Limits = Limits {
    time: Some(Misuses::TIME),
    memory: Some(Misuses::MEMORY),
    pause: PAUSE,
};

/// Name of the control, which misuses nothing. If the control fails, the results of the other kinds
/// are meaningless.
const CONTROL: &str = "none";

/// Prefix of the kinds of misuse that the C++ program commits.
const OPERATORS: &str = "delete-";

const PROGRAMS: Set<'_> = Set {
    name: "misuse",
    what: "the programs that misuse allocators",
    sources: &[&IN_C, &IN_CPP],
};

const HEADERS: &[Header] = &[BASIC[0], ("misuse.h", include_str!("../misuses/misuse.h"))];

const IN_C: Source =
    Source::new("misuse.c", include_str!("../misuses/misuse.c"), HEADERS).unoptimised();

const IN_CPP: Source =
    Source::new("delete.cpp", include_str!("../misuses/delete.cpp"), HEADERS).unoptimised();

/// Compiled misuse programs.
#[derive(Debug)]
pub struct Misuses(Compiled);

impl Misuses {
    /// Wall time after which a program counts as hung. A program usually takes a fraction of a
    /// second.
    pub const TIME: Duration = Duration::from_secs(20);

    /// Resident memory above which a program counts as hung. A program usually takes a few dozen
    /// MiB.
    pub const MEMORY: Bytes = Bytes(1 << 30);

    /// Compiles the programs into the cache, unless the cache already contains them.
    ///
    /// # Errors
    /// When a compiler is missing or fails, the cache cannot be written, or the user interrupts.
    pub fn prepare(cache: &Cache) -> Result<Self, RegistryError> {
        PROGRAMS.compiled(cache).map(Self)
    }

    /// Runs the program without any misuse. Returns `None` if this run succeeds. Otherwise returns
    /// the reason why no conclusion about the entrant is possible: another library served malloc,
    /// or the program fails even without misuse.
    ///
    /// # Errors
    /// When the program cannot be started, its output cannot be stored, or the user interrupts.
    pub fn control(&self, entrant: &Entrant) -> Result<Option<String>, RegistryError> {
        let run = self.run(entrant, CONTROL)?;
        let why = run.said.or(run.harm);
        let why = why.unwrap_or_else(|| run.ending.to_string());
        Ok(match (run.outcome, run.ending) {
            (MisuseOutcome::Unharmed, _) => None,
            (_, Ending::Exited(OTHER_ALLOCATOR)) => Some(format!("it does not serve: {why}")),
            _ => Some(format!(
                "a program without any misuse fails under it: {why}"
            )),
        })
    }

    /// Commits the misuse `kind` under an entrant.
    ///
    /// # Errors
    /// When the program cannot be started, its output cannot be stored, or the user interrupts.
    pub fn run(&self, entrant: &Entrant, kind: &str) -> Result<MisuseRun, RegistryError> {
        let source = if kind.starts_with(OPERATORS) {
            &IN_CPP
        } else {
            &IN_C
        };
        let scratch = tempfile::tempdir().map_err(FileError::of("make a folder in", "/tmp"))?;
        let output = scratch.path().join("output");
        // Both streams append to one file, so that the order of its lines is the order of events.
        let open = || {
            let mut options = std::fs::OpenOptions::new();
            let file = options.create(true).append(true).open(&output);
            file.map_err(FileError::of("write", &output))
        };
        let mut command = Command::new(self.0.program(source));
        command.arg(kind).stdout(open()?).stderr(open()?);
        // Without this variable, some versions of glibc write their messages to the terminal
        // instead of standard error.
        command.env("LIBC_FATAL_STDERR_", "1");
        let ended = self.0.run(&mut command, entrant, scratch.path(), LIMITS)?;
        let text = std::fs::read(&output).map_err(FileError::of("read", &output))?;
        let ending = match ended {
            Ended::Itself(status) => child::ending(status),
            Ended::OverLimit => Ending::TimedOut,
        };
        let found = output::read(&String::from_utf8_lossy(&text), ending);
        Ok(MisuseRun {
            allocator: entrant.name.clone(),
            kind: kind.to_owned(),
            outcome: found.outcome,
            stage: found.stage,
            ending,
            said: found.said,
            harm: found.harm,
        })
    }
}
