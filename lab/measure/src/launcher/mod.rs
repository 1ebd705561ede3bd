//! The small process that starts everything measured.
//!
//! The kernel folds the peak resident size of a process into that of the children it forks, even
//! if they execute something else: the measurer must be small, and heapdrome is not. So heapdrome
//! starts itself again as a launcher, which reads one request a line from its standard input (a
//! socket), starts what it says, waits for its end, and answers with what that cost.
//!
//! A launcher is the subreaper of all that it starts: nothing escapes it by detaching. It has a
//! session of its own, so that Ctrl-C on the terminal reaches heapdrome alone, which decides. When
//! its socket closes, because heapdrome is done or was killed, it kills its tree and ends. That is
//! why it does not ask the kernel to be killed along with heapdrome (`PR_SET_PDEATHSIG`): it has
//! this last thing to do.

mod client;
mod ending;
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

/// The argument that makes heapdrome a launcher.
pub const ARGUMENT: &str = "__launch";

/// If this process was started as a launcher, serves until its socket closes and never returns.
/// Must be the first thing that `main` does, while the process is small and has one thread.
pub fn main_if_asked() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == ARGUMENT) && arguments.next().is_none() {
        std::process::exit(serve::serve());
    }
}

/// Launcher of the commands of a race.
#[derive(Clone, Debug)]
pub enum LauncherKind {
    /// A small process that starts them.
    Program(LauncherProgram),
    /// A function that returns their cost, and starts nothing.
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

/// The program that serves as the launcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LauncherProgram {
    /// Its path.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

impl LauncherProgram {
    /// This very executable, whose `main` calls [`main_if_asked`].
    pub fn of_this_executable() -> Self {
        Self {
            arguments: vec![ARGUMENT.into()],
            program: "/proc/self/exe".into(),
        }
    }

    /// Another executable whose `main` calls [`main_if_asked`].
    pub fn of(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            arguments: vec![ARGUMENT.into()],
        }
    }
}
