//! Reasons for an exit status other than 0.

use std::fmt::Display;

/// A failure, by category. The message is one line with the problem and its remedy.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The report contains a negative conclusion, such as an entrant that failed or a condition
    /// that was confirmed.
    #[error("{0}")]
    Entrant(String),
    /// Wrong usage or input.
    #[error("{0}")]
    Usage(String),
    /// The command fails under the baseline, or the runs of the entrants are not comparable.
    #[error("{0}")]
    Baseline(String),
    /// A file could not be written, a process could not be started, or the machine failed
    /// otherwise.
    #[error("{0}")]
    Machine(String),
    /// Ctrl-C (SIGINT), SIGTERM or SIGHUP ended the work.
    #[error("interrupted")]
    Interrupted,
}

impl Failure {
    /// Creates a failure caused by the user's input.
    pub fn usage(cause: impl Display) -> Self {
        Self::Usage(cause.to_string())
    }

    /// Creates a failure of the machine, such as a full disk, a missing permission or a process
    /// that cannot be started.
    pub fn machine(cause: impl Display) -> Self {
        Self::Machine(cause.to_string())
    }

    /// Returns the exit status that `heapdrome --help` documents.
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
