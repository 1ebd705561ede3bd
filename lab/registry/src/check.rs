//! Checks of an allocator with programs that use memory in different ways.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use heapdrome_conformance::{Check, Level, OTHER_ALLOCATOR, Source, checks};
use heapdrome_packages::{Cache, last_lines};
use heapdrome_schema::{Ending, Entrant};
use heapdrome_system::FileError;
use heapdrome_system::child::{self, Ended, Limits};

use crate::RegistryError;
use crate::compiled::{Compiled, Set};

/// Returns the time limit of a program. With a sound allocator, a basic program takes less than a
/// second, and every other program less than half a minute.
fn limit_of(level: Level) -> Duration {
    Duration::from_secs(match level {
        Level::Basic => 10,
        Level::Strict => 120,
    })
}

/// Outcome of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckOutcome {
    /// The program succeeded.
    Passed,
    /// The program found a fault or crashed. The text describes it.
    Broke(String),
    /// The program exceeded this time limit and was killed.
    Hung(Duration),
    /// Another library served malloc, so the program checked nothing. The text gives the details.
    NotServed(String),
}

/// Result of one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckResult {
    /// Name of the check program, which describes the kind of program that it represents.
    pub program: &'static str,
    /// Source file of the check program.
    pub source: PathBuf,
    /// Shell command that runs the check program once more.
    pub again: String,
    /// Outcome of the program.
    pub outcome: CheckOutcome,
    /// Remarks that are not faults, such as `lacks pvalloc`.
    pub notes: Vec<String>,
}

/// Compiled programs of a level and of all lower levels.
#[derive(Debug)]
pub struct Checks {
    compiled: Compiled,
    level: Level,
}

impl Checks {
    /// Compiles the programs of a level and of all lower levels into the cache, unless the cache
    /// already contains them.
    ///
    /// # Errors
    /// When a compiler is missing or fails, the cache cannot be written, or the user interrupts.
    pub fn prepare(cache: &Cache, level: Level) -> Result<Self, RegistryError> {
        let mut sources: Vec<&'static Source> = Vec::new();
        for check in of_level(level) {
            if !sources.contains(&check.source) {
                sources.push(check.source);
            }
        }
        let set = Set {
            name: "checks",
            what: "the programs that check allocators",
            sources: &sources,
        };
        let compiled = set.compiled(cache)?;
        Ok(Self { compiled, level })
    }

    /// Returns the names of the programs of the level and of all lower levels.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        of_level(self.level).map(|check| check.name)
    }

    /// Runs the programs under an entrant, the basic ones first, and passes each result to
    /// `finished` when its program ends. Skips the programs of higher levels if another allocator
    /// served a basic program.
    ///
    /// # Errors
    /// When a program cannot be started, its output cannot be stored, or the user interrupts.
    pub fn run(
        &self,
        entrant: &Entrant,
        mut finished: impl FnMut(CheckResult),
    ) -> Result<(), RegistryError> {
        let mut is_served = true;
        for check in of_level(self.level) {
            if check.level == Level::Basic || is_served {
                let result = self.run_one(check, entrant)?;
                is_served &= !matches!(result.outcome, CheckOutcome::NotServed(_));
                finished(result);
            }
        }
        Ok(())
    }

    fn run_one(&self, check: &Check, entrant: &Entrant) -> Result<CheckResult, RegistryError> {
        let scratch = tempfile::tempdir().map_err(FileError::of("make a folder in", "/tmp"))?;
        let (output, errors) = (scratch.path().join("output"), scratch.path().join("errors"));
        let create =
            |path: &Path| std::fs::File::create(path).map_err(FileError::of("write", path));
        let program = self.compiled.program(check.source);
        let mut command = check.command(&program, entrant.library.as_deref());
        command.stdout(create(&output)?).stderr(create(&errors)?);
        let mut entrant = entrant.clone();
        if !check.preloaded {
            entrant.preload.clear();
        }
        let limit = limit_of(check.level);
        let limits = Limits::of_time(limit);
        let ended = self
            .compiled
            .run(&mut command, &entrant, scratch.path(), limits)?;
        let outcome = match ended {
            Ended::OverLimit => CheckOutcome::Hung(limit),
            Ended::Itself(status) => {
                let said = last_lines(&errors, 1).concat();
                outcome_of(check.level, child::ending(status), said)
            }
        };
        Ok(CheckResult {
            program: check.name,
            source: program.with_file_name(check.source.file),
            again: shell_line(check, &command),
            outcome,
            notes: last_lines(&output, 5),
        })
    }
}

/// Returns the line that runs a check's command in a shell.
fn shell_line(check: &Check, command: &Command) -> String {
    let set = command.get_envs().filter_map(|(name, value)| {
        let (name, value) = (name.to_string_lossy(), value?.to_string_lossy());
        Some(format!("{name}={value}"))
    });
    let program = std::iter::once(command.get_program()).chain(command.get_args());
    let program = program.map(|word| word.to_string_lossy().into_owned());
    let words: Vec<String> = set.chain(program).collect();
    let words = words.iter().map(String::as_str);
    let line = format!("env {}", shlex::try_join(words).unwrap_or_default());
    match check.shell_limit() {
        Some(limit) => format!("({limit}; {line})"),
        None => line,
    }
}

/// Returns the checks of a level and of all lower levels, the basic ones first.
fn of_level(level: Level) -> impl Iterator<Item = &'static Check> {
    checks().iter().filter(move |check| check.level <= level)
}

fn outcome_of(level: Level, ending: Ending, said: String) -> CheckOutcome {
    match ending {
        Ending::Exited(0) => CheckOutcome::Passed,
        Ending::Exited(OTHER_ALLOCATOR) if level == Level::Basic => CheckOutcome::NotServed(said),
        Ending::Exited(1) if !said.is_empty() => CheckOutcome::Broke(said),
        ending if said.is_empty() => CheckOutcome::Broke(ending.to_string()),
        ending => CheckOutcome::Broke(format!("{ending}: {said}")),
    }
}
