//! Errors that prevent a proof.

use std::io;
use std::path::PathBuf;

/// Reason why a proof could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum WitnessError {
    /// The command is empty.
    #[error("the command is empty; name a program to run")]
    EmptyCommand,
    /// The program was not found.
    #[error("cannot find the program {program}; check its name and PATH")]
    CommandNotFound {
        /// The first word of the command.
        program: String,
    },
    /// The kernel refused to run the program.
    #[error("cannot run {program}: {source}")]
    CannotRun {
        /// Path of the program.
        program: PathBuf,
        /// Error from the operating system.
        source: io::Error,
    },
    /// A file or folder that the command needs cannot be opened.
    #[error("cannot open {path} for the command's {purpose}: {source}")]
    CannotOpen {
        /// Path of the file or folder.
        path: PathBuf,
        /// Purpose of the file or folder.
        purpose: &'static str,
        /// Error from the operating system.
        source: io::Error,
    },
    /// A path that `LD_PRELOAD` cannot express.
    #[error(
        "{path} contains a space or a colon, which ends a name in LD_PRELOAD; move the library to \
         a path without them"
    )]
    UnspeakablePath {
        /// Path of the library.
        path: PathBuf,
    },
    /// No folder can hold the records.
    #[error(
        "no folder for the witness's records: {tried}; set TMPDIR to a writable folder whose path \
         has no space or colon and whose file system allows programs (no noexec)"
    )]
    NoFolder {
        /// The folders that were tried, each with the reason why it is unsuitable.
        tried: String,
    },
    /// The kernel refuses ptrace.
    #[error(
        "cannot follow the command with ptrace: {source}; in a container add the capability \
         SYS_PTRACE or a seccomp profile that allows ptrace, elsewhere set kernel.yama.ptrace_scope \
         to 0, 1 or 2, and start heapdrome outside of strace and debuggers"
    )]
    PtraceForbidden {
        /// Error from the operating system.
        source: io::Error,
    },
    /// Another operation of the witness failed.
    #[error("the witness could not {action}: {source}")]
    System {
        /// The operation that failed, such as `start a thread`.
        action: &'static str,
        /// Error from the operating system, or the panic of a thread of the witness.
        source: io::Error,
    },
    /// The interrupt flag was raised.
    #[error("interrupted while the witness watched the command")]
    Interrupted,
    /// This build contains no counting library.
    #[error(
        "this heapdrome was built without its witness, which works on x86-64 and aarch64 Linux \
         with glibc; build it there, or with a linker for the target"
    )]
    Unsupported,
}
