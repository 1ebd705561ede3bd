//! Well-known programs, with loads that heapdrome prepares, so that all users can race identical
//! programs and loads.
//!
//! Each program has a data file below `data/`, which describes it, and a module, which prepares its
//! command. The module finds the program, generates the input into the cache, and records versions
//! and parameters in [`Prepared::notes`].
//!
//! ```no_run
//! use heapdrome_packages::Cache;
//! use heapdrome_programs::find;
//!
//! let program = find("sqlite")?;
//! let settings = program.settings(&["quick=yes"])?;
//! let prepared = program.prepare(&Cache::open()?, &settings, &mut |event| println!("{event}"))?;
//! println!("{} in {}", prepared.command.join(" "), prepared.directory.display());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod availability;
mod build;
mod definition;
mod error;
mod install;
mod loads;
mod random;
mod request;
mod settings;
mod tools;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use heapdrome_packages::{Cache, Lock};
use heapdrome_schema::{Metric, Server};

use request::Request;

pub use availability::Availability;
pub use definition::{Parameter, Program, list};
pub use error::{ProgramError, Unknown};
pub use install::{Missing, missing};
pub use settings::Settings;

/// Next step of `prepare`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The package is looked up in the cache, and fetched if it is missing.
    Fetching {
        /// Name and version of the package.
        package: String,
    },
    /// The program's folder is about to be locked. If another heapdrome process is racing this
    /// program, `prepare` waits for its lock.
    Locking {
        /// The name of the program.
        program: String,
    },
    /// The build's description, or the program's input, is written.
    Writing {
        /// The folder into which it is written.
        directory: PathBuf,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fetching { package } => write!(out, "fetching {package}"),
            Self::Locking { program } => write!(out, "opening the folder of {program}"),
            Self::Writing { directory } => write!(out, "writing {}", directory.display()),
        }
    }
}

/// Program that is ready to be raced.
///
/// While this value exists, no other heapdrome process prepares the same folder or cleans the
/// cache. Two processes that race in one folder would remove each other's files. The same process
/// may prepare the folder again for alternating races, because every run begins with
/// [`Prepared::prepare`] or needs no preparation.
#[derive(Debug)]
pub struct Prepared {
    /// The program and its arguments; for a server, the load generator and its arguments.
    pub command: Vec<String>,
    /// A shell command line to run before each run, from any folder.
    pub prepare: Option<String>,
    /// The folder in which the command must run.
    pub directory: PathBuf,
    /// Versions of the tools, and values of the parameters. For a build, also the package, the
    /// number of translation units, the flags, the number of jobs and any skipped compiler cache.
    pub notes: Vec<String>,
    /// Environment variables of the command, equal for every entrant.
    pub environment: BTreeMap<String, String>,
    /// The server to measure while the command loads it, if there is one.
    pub server: Option<Server>,
    /// Figures that the command itself prints.
    pub metrics: Vec<Metric>,
    /// Exit statuses of the command that count as success.
    pub success: Vec<i32>,
    /// Whether every run prints the same output, so that a difference is the allocator's fault.
    pub repeatable_output: bool,
    _lock: Arc<Lock>,
}

/// Returns the program of this name.
///
/// # Errors
/// Returns an error that suggests the nearest name if no program has this name.
pub fn find(name: &str) -> Result<&'static Program, Unknown> {
    list()
        .iter()
        .find(|program| program.name == name)
        .ok_or_else(|| Unknown::nearest_to(name))
}

impl Program {
    /// Checks whether all requirements of the program are installed.
    pub fn availability(&self) -> Availability {
        self.availability_in(std::env::var_os("PATH").as_ref())
    }

    /// Fetches or generates the program's input and writes its folder in the cache.
    ///
    /// # Errors
    /// Returns an error if a parameter is unknown or invalid, a required program is missing or does
    /// not run, the package cannot be fetched, the input cannot be generated, the cache cannot be
    /// written, or the user interrupts.
    pub fn prepare(
        &self,
        cache: &Cache,
        settings: &Settings,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<Prepared, ProgramError> {
        let values = self.values(settings)?;
        if let Some(build) = &self.build {
            return build::prepare(self, build, cache, &values, on_event);
        }
        let request = Request::new(self, values, cache)?;
        let load = loads::find(&self.name).ok_or_else(|| Unknown::nearest_to(&self.name))?;
        load(&request, on_event)
    }
}
