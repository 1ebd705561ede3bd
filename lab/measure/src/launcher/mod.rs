//! The small process that starts the commands of a race.
//!
//! A forked child inherits the peak resident size of its parent, even if it then executes another
//! program. So the measurer must be small, but heapdrome is not. Therefore heapdrome starts itself
//! again as a launcher. The launcher reads one request per line from its standard input (a socket),
//! starts the requested process, waits for its end, and answers with its cost.
//!
//! A launcher is the subreaper of all its descendants, so none escapes by detaching. It has its own
//! session: Ctrl-C on the terminal reaches only heapdrome, which decides how to react. When
//! heapdrome closes the socket or is killed, the launcher kills its tree and ends. For this it must
//! outlive heapdrome, so it does not use `PR_SET_PDEATHSIG`.

mod client;
mod end;
mod message;
mod moment;
mod serve;
mod simulated;
mod wait;

use std::ffi::OsString;
use std::path::PathBuf;

pub(crate) use client::Launcher;
pub(crate) use message::{Answer, CgroupFiles, Outcome, Refusal, Spawn, Stop};
pub(crate) use wait::child_usage;

pub use simulated::{SimulatedEnd, SimulatedRun, Simulation};

/// Argument that turns heapdrome into a launcher.
pub const ARGUMENT: &str = "__launch";

/// If this process was started as a launcher, serves requests until the socket closes, then exits.
/// Must be called first in `main`, while the process is small and has one thread.
pub fn main_if_asked() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == ARGUMENT) && arguments.next().is_none() {
        std::process::exit(serve::serve());
    }
}

/// Launcher of the commands of a race.
#[derive(Clone, Debug)]
pub enum LauncherKind {
    /// A small process that starts the commands.
    Program(LauncherProgram),
    /// A function that returns the cost of each command without starting a process.
    Simulated(Simulation),
}

impl From<&LauncherProgram> for LauncherKind {
    fn from(program: &LauncherProgram) -> Self {
        Self::Program(program.clone())
    }
}

impl From<&LauncherKind> for LauncherKind {
    fn from(kind: &LauncherKind) -> Self {
        kind.clone()
    }
}

/// Program that serves as the launcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LauncherProgram {
    /// Path of the program.
    pub program: PathBuf,
    /// Arguments of the program.
    pub arguments: Vec<OsString>,
}

impl LauncherProgram {
    /// Returns the launcher that is the current executable. Its `main` must call
    /// [`main_if_asked`].
    pub fn of_this_executable() -> Self {
        Self {
            arguments: vec![ARGUMENT.into()],
            program: "/proc/self/exe".into(),
        }
    }

    /// Returns the launcher that is the executable `program`. Its `main` must call
    /// [`main_if_asked`].
    pub fn of(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            arguments: vec![ARGUMENT.into()],
        }
    }
}
