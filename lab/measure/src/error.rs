//! What can go wrong while measuring, each in one line with what to do about it.

use std::io;
use std::path::PathBuf;

use heapdrome_schema::Ending;

use crate::journal::JournalError;

/// The reason why a race cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The command is in no folder of `PATH`, or the file is not there.
    #[error("command not found: {command}; give its path or mend PATH")]
    CommandNotFound {
        /// The command's first word.
        command: String,
    },
    /// The command is there and cannot be executed.
    #[error("cannot execute {command}: {reason}")]
    NotExecutable {
        /// The command's first word.
        command: String,
        /// What the kernel said.
        reason: String,
    },
    /// The plan has an empty command.
    #[error("the command is empty; name a program after --")]
    EmptyCommand,
    /// A file or folder that a run needs cannot be used.
    #[error("cannot use {what} {path}: {source}")]
    Unusable {
        /// What it is for, such as `the standard input`.
        what: &'static str,
        /// Where it is.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The command cannot be pinned to the CPUs that were asked for.
    #[error("cannot pin to CPUs {cpus:?}: {reason}; name CPUs that this process may use")]
    CannotPin {
        /// The CPUs.
        cpus: Vec<usize>,
        /// What the kernel said.
        reason: String,
    },
    /// A `--setup`, `--prepare` or `--cleanup` command failed.
    #[error("the {step} command failed ({ending}): {command}{}", after_colon(.stderr_tail))]
    StepFailed {
        /// Which command: `--setup`, `--prepare` or `--cleanup`.
        step: &'static str,
        /// The command.
        command: String,
        /// How it ended.
        ending: Ending,
        /// The last lines of its standard error.
        stderr_tail: String,
    },
    /// The process that starts the measured commands could not be started, or is gone.
    #[error("the launcher {what}: {reason}")]
    Launcher {
        /// What it did: `cannot be started`, `ended`.
        what: &'static str,
        /// Why.
        reason: String,
    },
    /// Some process of a measured tree does not die.
    #[error("these processes did not die when killed: {names}; end them before the next race")]
    CannotKill {
        /// Their names and ids.
        names: String,
    },
    /// The regular expression of a metric is wrong.
    #[error("the pattern of metric {name} is not a regular expression: {reason}")]
    BadMetric {
        /// The metric.
        name: String,
        /// What the parser said.
        reason: String,
    },
    /// An entrant's library is not the one that was proven. The race can go on: take the proof
    /// again, then call [`Race::accept_library`](crate::Race::accept_library).
    #[error("{library} changed during the race ({how}); its proof is void")]
    LibraryChanged {
        /// The entrant's place in the plan.
        entrant: usize,
        /// The library.
        library: PathBuf,
        /// What changed.
        how: String,
    },
    /// The race's folder cannot be written.
    #[error("cannot write {path}: {source}; the race stops, what is recorded stays")]
    Scratch {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The journal cannot be written or read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The interrupt flag was raised.
    #[error("interrupted")]
    Interrupted,
}

/// `: text` with line breaks turned into ` | `, or nothing.
fn after_colon(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    if lines.is_empty() {
        String::new()
    } else {
        format!(": {}", lines.join(" | "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_says_all_in_one_line() {
        let error = MeasureError::StepFailed {
            step: "--prepare",
            command: "ninja clean".to_owned(),
            ending: Ending::Exited(1),
            stderr_tail: "no such folder\ngiving up\n".to_owned(),
        };
        assert_eq!(
            error.to_string(),
            "the --prepare command failed (exit status 1): ninja clean: no such folder | giving up"
        );
    }
}
