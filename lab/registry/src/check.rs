//! Loads an allocator into programs that use memory in different ways, and says what broke.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use heapdrome_packages::{Cache, last_lines};
use heapdrome_schema::{Ending, Entrant};
use heapdrome_system::FileError;
use heapdrome_system::child::{Ended, Limits};

use crate::RegistryError;
use crate::entry::Language;

pub(crate) mod compiled;

use compiled::{Compiled, Program, Set};

/// How long a program may take; each takes less than a second under a healthy allocator.
const LIMIT: Duration = Duration::from_secs(10);

/// What the programs say when another library served malloc.
pub(crate) const OTHER_ALLOCATOR: i32 = 2;

/// How one of the programs ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckOutcome {
    /// It did all that it should.
    Passed,
    /// It found a fault, or died; in words.
    Broke(String),
    /// It did not end within this time and was killed.
    Hung(Duration),
    /// The library was not the one that served malloc, so nothing was checked; in words.
    NotServed(String),
}

/// What one program found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckResult {
    /// The program's name: what kind of program it stands for.
    pub program: &'static str,
    /// How it ended.
    pub outcome: CheckOutcome,
    /// Remarks that are no faults, such as `lacks pvalloc`.
    pub notes: Vec<String>,
}

/// What all programs include: how they fail, and how they make sure of the allocator.
pub(crate) const COMMON: (&str, &str) = ("common.h", include_str!("../checks/common.h"));

macro_rules! program {
    ($name:literal, $file:literal, $language:ident) => {
        Program {
            name: $name,
            file: $file,
            text: include_str!(concat!("../checks/", $file)),
            language: Language::$language,
        }
    };
}

static CHECKS: Set = Set {
    name: "checks",
    what: "the programs that check allocators",
    shared: &[COMMON],
    programs: &[
        program!("C", "c.c", C),
        program!("C++", "cxx.cpp", Cpp),
        program!("threads", "threads.c", C),
        program!("aligned", "aligned.c", C),
        program!("fork", "fork.c", C),
        program!("exhaustion", "exhaustion.cpp", Cpp),
    ],
    optimisation: "-O1",
};

/// The programs, compiled.
#[derive(Debug)]
pub struct Checks(Compiled);

impl Checks {
    /// Compiles the programs into the cache, unless they are there.
    ///
    /// # Errors
    /// When a compiler is missing or the cache cannot be written to.
    pub fn prepare(cache: &Cache) -> Result<Self, RegistryError> {
        CHECKS.compiled(cache).map(Self)
    }

    /// Runs every program under an entrant.
    ///
    /// # Errors
    /// When a program cannot be started, or the person asked heapdrome to stop.
    pub fn run(&self, entrant: &Entrant) -> Result<Vec<CheckResult>, RegistryError> {
        CHECKS
            .programs
            .iter()
            .map(|program| self.run_one(program, entrant))
            .collect()
    }

    fn run_one(&self, program: &Program, entrant: &Entrant) -> Result<CheckResult, RegistryError> {
        let scratch = tempfile::tempdir().map_err(FileError::of("make a folder in", "/tmp"))?;
        let (output, errors) = (scratch.path().join("output"), scratch.path().join("errors"));
        let create =
            |path: &Path| std::fs::File::create(path).map_err(FileError::of("write", path));
        let mut command = self.0.command(program, entrant, scratch.path());
        command.stdout(create(&output)?).stderr(create(&errors)?);
        let limits = Limits::of_time(LIMIT);
        let outcome = match self.0.run(&mut command, &entrant.name, limits)? {
            Ended::OverLimit => CheckOutcome::Hung(LIMIT),
            Ended::Itself(status) => outcome_of(status, last_lines(&errors, 1).concat()),
        };
        Ok(CheckResult {
            program: program.name,
            outcome,
            notes: last_lines(&output, 5),
        })
    }
}

fn outcome_of(status: ExitStatus, said: String) -> CheckOutcome {
    let after = |said: String| {
        if said.is_empty() {
            said
        } else {
            format!(": {said}")
        }
    };
    match (status.code(), status.signal()) {
        (Some(0), _) => CheckOutcome::Passed,
        (Some(OTHER_ALLOCATOR), _) => CheckOutcome::NotServed(said),
        (Some(1), _) if !said.is_empty() => CheckOutcome::Broke(said),
        (Some(code), _) => CheckOutcome::Broke(format!("{}{}", Ending::Exited(code), after(said))),
        (None, signal) => {
            let ending = Ending::Killed(signal.unwrap_or_default());
            CheckOutcome::Broke(format!("{ending}{}", after(said)))
        }
    }
}
