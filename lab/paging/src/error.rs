//! Errors of the lab. Each is displayed as one line.

use heapdrome_schema::Bytes;
use heapdrome_system::FileError;

/// The reason why an operation failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The machine lacks a capability that the lab needs.
    #[error("{missing}: {fix}")]
    Missing {
        /// Description of the missing capability.
        missing: String,
        /// Suggested fix, such as a command or an option.
        fix: String,
    },
    /// A file or folder operation failed.
    #[error(transparent)]
    File(#[from] FileError),
    /// An item that the lab created could not be removed.
    #[error("{what} is still there: {reason}; `heapdrome paging clean` tries again")]
    Left {
        /// Description of the item.
        what: String,
        /// Reason why the item could not be removed.
        reason: String,
    },
    /// The measuring process failed. The text completes the sentence "the measuring process ...".
    #[error("the measuring process {0}")]
    Child(String),
    /// The user's command failed. The text completes the sentence "the command ...".
    #[error("the command {0}")]
    Command(String),
    /// The child was OOM-killed. In a group of systemd, a SIGKILL counts as an OOM kill.
    #[error(
        "the measuring process ran out of memory under the limit and was killed, with {} of swap free; {}",
        crate::words::size(*.free_swap),
        .fix
    )]
    OutOfMemory {
        /// Free swap of the machine.
        free_swap: Bytes,
        /// Suggested fix.
        fix: &'static str,
    },
    /// The user interrupted, for example by Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// Returns the error for a missing capability.
    pub(crate) fn missing(missing: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::Missing {
            missing: missing.into(),
            fix: fix.into(),
        }
    }
}
