//! Why heapdrome ends with another exit status than 0.

use std::fmt::Display;

/// What went wrong, sorted by whose concern it is. The message is one line that says what happened
/// and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// An entrant failed; the report has told the rest.
    #[error("{0}")]
    Entrant(String),
    /// Wrong usage or input.
    #[error("{0}")]
    Usage(String),
    /// The command itself fails on the baseline.
    #[error("{0}")]
    Baseline(String),
    /// heapdrome could not write or start something.
    #[error("{0}")]
    Machine(String),
    /// Someone pressed Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

impl Failure {
    /// A failure of the one who typed the command line.
    pub fn usage(cause: impl Display) -> Self {
        Self::Usage(cause.to_string())
    }

    /// A failure of the machine: disk, rights, processes.
    pub fn machine(cause: impl Display) -> Self {
        Self::Machine(cause.to_string())
    }

    /// The exit status, as `heapdrome --help` documents it.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Entrant(_) => 1,
            Self::Usage(_) => 2,
            Self::Baseline(_) => 3,
            Self::Machine(_) => 4,
            Self::Interrupted => 130,
        }
    }
}
