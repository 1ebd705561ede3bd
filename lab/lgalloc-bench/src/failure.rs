//! Why the process ends without a report.

use std::io;
use std::path::PathBuf;

use heapdrome_lgalloc::AllocError;

/// One line each.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// What it was told makes no sense.
    #[error("{0}")]
    Instructions(String),
    /// The group cannot be entered.
    #[error("cannot enter the control group through {}: {}", .0.display(), .1)]
    Join(PathBuf, io::Error),
    /// lgalloc has no memory.
    #[error("lgalloc: {0}")]
    Lgalloc(#[from] AllocError),
    /// The published crate has no memory.
    #[error("lgalloc-published: {0}")]
    Published(#[from] lgalloc_published::AllocError),
    /// `malloc` has no memory.
    #[error("malloc has no {0} bytes")]
    Malloc(usize),
    /// The system refuses.
    #[error("{0} fails: {1}")]
    System(&'static str, io::Error),
    /// A page does not hold what was written to it.
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
    /// The last call to the system failed.
    pub fn system(call: &'static str) -> Self {
        Self::System(call, io::Error::last_os_error())
    }

    /// The exit status.
    pub fn status(&self) -> u8 {
        match self {
            Self::Instructions(_) | Self::Join(..) => 2,
            _ => 1,
        }
    }
}
