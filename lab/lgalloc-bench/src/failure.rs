//! Reasons why the process ends without a report.

use std::io;
use std::path::PathBuf;

use heapdrome_lgalloc::AllocError;

/// A failure that is displayed as one line.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The instructions are invalid.
    #[error("{0}")]
    Instructions(String),
    /// The process cannot enter its control group.
    #[error("cannot enter the control group through {}: {}", .0.display(), .1)]
    Join(PathBuf, io::Error),
    /// lgalloc refused an allocation.
    #[error("lgalloc: {0}")]
    Lgalloc(#[from] AllocError),
    /// The published crate refused an allocation.
    #[error("lgalloc-published: {0}")]
    Published(#[from] lgalloc_published::AllocError),
    /// `malloc` is out of memory.
    #[error("malloc of {0} bytes failed: out of memory")]
    Malloc(usize),
    /// A system call failed, or a file of the kernel could not be read.
    #[error("{0} fails: {1}")]
    System(&'static str, io::Error),
    /// A page does not contain the data that was written to it.
    #[error("page {0} does not hold what was written to it")]
    Contents(usize),
    /// A thread panicked.
    #[error("a thread panicked")]
    Thread,
    /// The answer cannot be written.
    #[error("cannot write the answer: {0}")]
    Answer(io::Error),
}

impl Failure {
    /// Returns the failure of the last system call, from `errno`.
    pub fn system(call: &'static str) -> Self {
        Self::System(call, io::Error::last_os_error())
    }

    /// Returns the exit status of a process that ends with this failure.
    pub fn status(&self) -> u8 {
        match self {
            Self::Instructions(_) | Self::Join(..) => 2,
            _ => 1,
        }
    }
}
