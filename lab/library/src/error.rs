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
        /// The reason.
        reason: String,
        /// The package that contains the program.
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
        /// The step.
        step: &'static str,
        /// The reason, in one line.
        reason: String,
    },
    /// A step of the recipe took too long, and was stopped.
    #[error("{step} was stopped after {seconds} s")]
    TooLong {
        /// The step.
        step: &'static str,
        /// The limit.
        seconds: u64,
    },
    /// The recorded trace cannot be read.
    #[error("the recorded trace: {0}")]
    Trace(#[from] TraceError),
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The file is not a valid manifest.
    #[error("{}: not a manifest of heapdrome's library: {reason}", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The user interrupted heapdrome.
    #[error("interrupted")]
    Interrupted,
}

/// Converts an I/O error into one that names the file.
pub(crate) fn at(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> LibraryError + use<> {
    let path = path.to_owned();
    move |source| LibraryError::File { path, source }
}
