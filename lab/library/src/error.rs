//! Errors of the library.

use std::path::PathBuf;

use heapdrome_packages::CacheError;
use heapdrome_programs::ProgramError;
use heapdrome_trace::TraceError;

/// Reason why a trace was not recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LibraryError {
    /// There is no such recipe.
    #[error("no such trace in the library: {name} ({advice})")]
    Unknown {
        /// The requested name.
        name: String,
        /// The most similar name, or all names.
        advice: String,
    },
    /// The program is not installed, or cannot run here.
    #[error("{reason}; install {package}")]
    NotInstalled {
        /// Reason why the program cannot run.
        reason: String,
        /// Packages that contain the program, separated by spaces.
        package: String,
    },
    /// The program cannot be prepared.
    #[error("{0}")]
    Program(#[from] ProgramError),
    /// The cache cannot be used.
    #[error("{0}")]
    Cache(#[from] CacheError),
    /// A step of the recipe failed.
    #[error("{step} failed: {reason}")]
    Failed {
        /// Name of the step, such as `the recording`.
        step: &'static str,
        /// The reason, in one line.
        reason: String,
    },
    /// A step of the recipe took too long, and was stopped.
    #[error("{step} was stopped after {seconds} s")]
    TooLong {
        /// Name of the step, such as `the recording`.
        step: &'static str,
        /// Time limit in seconds.
        seconds: u64,
    },
    /// The recorded trace cannot be read.
    #[error("the recorded trace: {0}")]
    Trace(#[from] TraceError),
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error that the system returned.
        source: std::io::Error,
    },
    /// The file is not a valid manifest.
    #[error("{}: not a manifest of heapdrome's library: {reason}", path.display())]
    Manifest {
        /// Path of the file.
        path: PathBuf,
        /// Reason why the file cannot be parsed.
        reason: String,
    },
    /// The user interrupted heapdrome.
    #[error("interrupted")]
    Interrupted,
}

/// Returns a function that adds the path of the file to an I/O error.
pub(crate) fn at(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> LibraryError + use<> {
    let path = path.to_owned();
    move |source| LibraryError::File { path, source }
}
