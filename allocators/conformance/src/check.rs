//! A check of the allocation ABI, and the command that runs it.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::source::{EXPECTED, Source};

/// Check: a program, and the name that it gets as an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    /// Name of the check.
    pub name: &'static str,
    /// Description in one line of Markdown.
    pub what: &'static str,
    /// Lowest level that includes the check.
    pub level: Level,
    /// Program that contains the check.
    pub source: &'static Source,
    /// Limit under which the program runs.
    limit: Option<Limit>,
    /// Whether the library is preloaded; if not, the program loads it itself.
    pub preloaded: bool,
}

/// Limit on memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Limit on address space.
    AddressSpace(u64),
    /// Limit on private writable memory, touched or not (`RLIMIT_DATA`). A strict overcommit policy
    /// (`vm.overcommit_memory` 2) limits the same memory for the whole system.
    Writable(u64),
}

/// Extent of the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Ordinary use: C and C++ programs, threads, aligned memory, forks, and requests that exceed
    /// memory.
    Basic,
    /// The basic level, corner cases of the ABI, limits on memory, and forks while the C library's
    /// own locks are held.
    Strict,
}

pub(crate) const fn basic(
    source: &'static Source,
    name: &'static str,
    what: &'static str,
) -> Check {
    Check {
        level: Level::Basic,
        ..check(source, name, what)
    }
}

pub(crate) const fn check(
    source: &'static Source,
    name: &'static str,
    what: &'static str,
) -> Check {
    Check {
        name,
        what,
        level: Level::Strict,
        source,
        limit: None,
        preloaded: true,
    }
}

impl Check {
    pub(crate) const fn with(mut self, limit: Limit) -> Self {
        self.limit = Some(limit);
        self
    }

    pub(crate) const fn loaded_by_the_program(mut self) -> Self {
        self.preloaded = false;
        self
    }
}

impl Check {
    /// Returns the command that runs the check, given the compiled program. The caller preloads the
    /// library if [`preloaded`](Self::preloaded) is set.
    #[must_use]
    pub fn command(&self, program: &Path, library: Option<&Path>) -> Command {
        let mut command = Command::new(program);
        command.arg(self.name).args(library);
        command.envs(library.map(|library| (EXPECTED, library)));
        if let Some(limit) = self.limit {
            // SAFETY: between fork and exec, only the system call setrlimit runs.
            unsafe { command.pre_exec(move || set(limit)) };
        }
        command
    }

    /// Returns the shell command that sets the check's memory limit, such as `ulimit -v 262144`;
    /// `None` without a limit.
    #[must_use]
    pub fn shell_limit(&self) -> Option<String> {
        self.limit.map(|limit| match limit {
            Limit::AddressSpace(bytes) => format!("ulimit -v {}", bytes >> 10),
            Limit::Writable(bytes) => format!("ulimit -d {}", bytes >> 10),
        })
    }
}

fn set(limit: Limit) -> io::Result<()> {
    let (what, bytes) = match limit {
        Limit::AddressSpace(bytes) => (libc::RLIMIT_AS, bytes),
        Limit::Writable(bytes) => (libc::RLIMIT_DATA, bytes),
    };
    let limit = libc::rlimit {
        rlim_cur: bytes,
        rlim_max: bytes,
    };
    // SAFETY: the limit is a local variable, which the call only reads.
    if unsafe { libc::setrlimit(what, &raw const limit) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
