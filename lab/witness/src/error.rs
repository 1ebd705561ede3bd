//! What can keep a proof from being taken.

use std::io;
use std::path::PathBuf;

/// Why no proof could be taken, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum WitnessError {
    /// There is nothing to run.
    #[error("the command is empty; name a program to run")]
    EmptyCommand,
    /// The program is nowhere.
    #[error("cannot find the program {program}; check its name and PATH")]
    CommandNotFound {
        /// The name that was asked for.
        program: String,
    },
    /// The kernel would not run the program.
    #[error("cannot run {program}: {source}")]
    CannotRun {
        /// The program.
        program: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A file or folder that the command needs cannot be opened.
    #[error("cannot open {path} for the command's {purpose}: {source}")]
    CannotOpen {
        /// The path.
        path: PathBuf,
        /// What it was wanted for.
        purpose: &'static str,
        /// The reason.
        source: io::Error,
    },
    /// A path that `LD_PRELOAD` cannot carry.
    #[error(
        "{path} holds a space or a colon, which LD_PRELOAD takes for the end of a name; move the \
         library to a path without them"
    )]
    UnspeakablePath {
        /// The path.
        path: PathBuf,
    },
    /// No folder fits the records.
    #[error(
        "no folder for the witness's records: {tried}; set TMPDIR to a writable folder whose path \
         has no space or colon and whose file system allows programs (no noexec)"
    )]
    NoFolder {
        /// What was tried, and why each did not do.
        tried: String,
    },
    /// The kernel refuses ptrace.
    #[error(
        "cannot follow the command with ptrace: {source}; in a container add the capability \
         SYS_PTRACE or a seccomp profile that allows ptrace, elsewhere set kernel.yama.ptrace_scope \
         to 0, 1 or 2, and start heapdrome outside of strace and debuggers"
    )]
    PtraceForbidden {
        /// The reason.
        source: io::Error,
    },
    /// Something else that the kernel refused.
    #[error("the witness could not {action}: {source}")]
    System {
        /// What it tried.
        action: &'static str,
        /// The reason.
        source: io::Error,
    },
    /// The interrupt flag was raised.
    #[error("interrupted while the witness watched the command")]
    Interrupted,
    /// This build carries no counting library.
    #[error(
        "this heapdrome was built without its witness, which works on x86-64 and aarch64 Linux \
         with glibc; build it there, or with a linker for the target"
    )]
    Unsupported,
}
