//! Errors of a recording.

use std::io;

use heapdrome_trace::TraceError;
use heapdrome_witness::WitnessError;

/// Reason why a command cannot be recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecorderError {
    /// No folder can hold the recording library.
    #[error(transparent)]
    Home(#[from] WitnessError),
    /// The command cannot be run.
    #[error("cannot run {program}: {source}")]
    CannotRun {
        /// The command's first word.
        program: String,
        /// Error that the system returned.
        source: io::Error,
    },
    /// The trace cannot be written.
    #[error("cannot write the trace: {0}")]
    Trace(#[from] TraceError),
    /// A call to the system failed.
    #[error("cannot {action}: {source}")]
    System {
        /// Description of the failed operation, such as `wait for daemons`.
        action: &'static str,
        /// Error that the system returned.
        source: io::Error,
    },
}

/// Returns a function that converts the error of a system call into one that names the operation
/// `action`.
pub(crate) fn failed(action: &'static str) -> impl FnOnce(io::Error) -> RecorderError {
    move |source| RecorderError::System { action, source }
}
