//! Errors of measuring. Each message is one line.

use std::io;
use std::path::PathBuf;

use heapdrome_schema::Ending;

use crate::journal::JournalError;

/// Reason why a race cannot start or continue.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The command is in no folder of `PATH`, or its file does not exist.
    #[error("command not found: {command}; give its path or fix PATH")]
    CommandNotFound {
        /// First word of the command.
        command: String,
    },
    /// The command exists but cannot be executed.
    #[error("cannot execute {command}: {reason}")]
    NotExecutable {
        /// First word of the command.
        command: String,
        /// Fault of the file, or the error that the kernel returned.
        reason: String,
    },
    /// The plan has an empty command.
    #[error("the command is empty; name a program after --")]
    EmptyCommand,
    /// A file or folder that a run needs is not usable.
    #[error("cannot use {what} {path}: {source}")]
    Unusable {
        /// Purpose of the file or folder, such as `the standard input`.
        what: &'static str,
        /// Path of the file or folder.
        path: PathBuf,
        /// Error that the system returned.
        source: io::Error,
    },
    /// The command cannot be pinned to the requested CPUs.
    #[error("cannot pin to CPUs {cpus:?}: {reason}; name CPUs that this process may use")]
    CannotPin {
        /// Numbers of the requested CPUs.
        cpus: Vec<usize>,
        /// Error that the kernel returned.
        reason: String,
    },
    /// A `--setup`, `--prepare` or `--cleanup` command failed.
    #[error("the {step} command failed ({ending}): {command}{}", after_colon(.stderr_tail))]
    StepFailed {
        /// Name of the step: `--setup`, `--prepare` or `--cleanup`.
        step: &'static str,
        /// Shell command of the step.
        command: String,
        /// Way in which the command ended.
        ending: Ending,
        /// Last lines of the command's standard error.
        stderr_tail: String,
    },
    /// The launcher cannot be started, has ended unexpectedly, or cannot do its work.
    #[error("the launcher {what}: {reason}")]
    Launcher {
        /// Fault of the launcher, such as `cannot be started` or `ended`.
        what: &'static str,
        /// Exit status of the launcher, or the error that it or the system reported.
        reason: String,
    },
    /// Some processes of a measured tree survive SIGKILL.
    #[error("these processes survived SIGKILL: {names}; end them before the next race")]
    CannotKill {
        /// Names and ids of these processes.
        names: String,
    },
    /// The regular expression of a metric or of a mask is invalid.
    #[error("the pattern of metric {name} is not a regular expression: {reason}")]
    BadMetric {
        /// Name that the plan gives the metric; `(masked)` for a mask.
        name: String,
        /// Error that the parser returned.
        reason: String,
    },
    /// A library of an entrant is missing, or is not the one that was proven. If the library was
    /// replaced, the race can continue after a new proof of the entrant and a call of
    /// [`Race::accept_library`](crate::Race::accept_library).
    #[error("{library} changed during the race ({how}); its proof is invalid")]
    LibraryChanged {
        /// Position of the entrant in the plan.
        entrant: usize,
        /// Path of the library.
        library: PathBuf,
        /// Description of the change.
        how: String,
    },
    /// The race's folder, or an output file in it, cannot be written or read.
    #[error("cannot use {path}: {source}; the race stops; recorded runs are kept")]
    Scratch {
        /// Path of the file or folder.
        path: PathBuf,
        /// Error that the system returned.
        source: io::Error,
    },
    /// The journal cannot be written or read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The interrupt flag was set.
    #[error("interrupted")]
    Interrupted,
}

/// Formats `: text` with line breaks replaced by ` | `, or nothing for an empty text.
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
    fn a_file_of_a_race_that_cannot_be_read_is_not_called_unwritable() {
        let error = MeasureError::Scratch {
            path: PathBuf::from("output/stdout"),
            source: io::ErrorKind::PermissionDenied.into(),
        };
        assert_eq!(
            error.to_string(),
            "cannot use output/stdout: permission denied; the race stops; recorded runs are kept"
        );
    }

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
