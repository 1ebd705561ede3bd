//! What can go wrong, each in one line that says what to do about it.

use heapdrome_record::Bytes;
use heapdrome_system::FileError;

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The machine lacks something, and one command or option brings it.
    #[error("{missing}: {mend}")]
    Missing {
        /// What is missing.
        missing: String,
        /// What brings it.
        mend: String,
    },
    /// A file or folder.
    #[error(transparent)]
    File(#[from] FileError),
    /// Something that the lab made is still there.
    #[error("{what} is still there: {reason}; `heapdrome paging clean` tries again")]
    Left {
        /// What.
        what: String,
        /// Why.
        reason: String,
    },
    /// The child did not do what it was asked.
    #[error("the measuring process {0}")]
    Child(String),
    /// A command that is not ours.
    #[error("the command {0}")]
    Command(String),
    /// The kernel killed the child for memory.
    #[error(
        "the measuring process was killed for memory under the limit, with {} of swap free; {}",
        crate::words::size(*.free_swap),
        .mend
    )]
    OutOfMemory {
        /// What was left of the machine's swap.
        free_swap: Bytes,
        /// What may help.
        mend: &'static str,
    },
    /// Someone pressed Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// Something is missing.
    pub(crate) fn missing(missing: impl Into<String>, mend: impl Into<String>) -> Self {
        Self::Missing {
            missing: missing.into(),
            mend: mend.into(),
        }
    }
}
