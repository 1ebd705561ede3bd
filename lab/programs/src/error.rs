//! Errors of programs, with advice to the user.

use std::path::PathBuf;

use heapdrome_packages::{CacheError, FetchError};
use heapdrome_schema::nearest_or_all;

/// No program has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no such program: {name} ({advice})")]
pub struct Unknown {
    /// The requested name.
    pub name: String,
    advice: String,
}

impl Unknown {
    pub(crate) fn nearest_to(name: &str) -> Self {
        let names = crate::list().iter().map(|program| program.name.as_str());
        Self {
            name: name.to_owned(),
            advice: nearest_or_all(name, names),
        }
    }
}

/// Reason why a program cannot be prepared.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// No program has this name.
    #[error(transparent)]
    Unknown(#[from] Unknown),
    /// A word does not have the form `KEY=VALUE`.
    #[error("{program} cannot parse {word}: write KEY=VALUE with one of the keys {known}")]
    NotASetting {
        /// Name of the program.
        program: String,
        /// The word that cannot be parsed.
        word: String,
        /// The names of all parameters.
        known: String,
    },
    /// The program has no such parameter.
    #[error("{program} has no parameter {setting}; it has: {known}")]
    UnknownSetting {
        /// Name of the program.
        program: String,
        /// The unknown parameter.
        setting: String,
        /// The names of all parameters.
        known: String,
    },
    /// A parameter is given twice.
    #[error("the parameter {setting} is given twice")]
    SettingTwice {
        /// Name of the parameter.
        setting: String,
    },
    /// The parameter cannot have this value.
    #[error("the parameter {setting} cannot be {value}; it can be: {possible}")]
    BadValue {
        /// Name of the parameter.
        setting: String,
        /// The invalid value.
        value: String,
        /// The possible values of the parameter.
        possible: String,
    },
    /// A requirement of the program is not installed.
    #[error("{program} needs {what}, and {looked_for} was not found in PATH; {advice}")]
    ProgramMissing {
        /// The program that has the requirement.
        program: String,
        /// The kind of program that is missing.
        what: String,
        /// The names that were searched.
        looked_for: String,
        /// Instruction for installing the missing program.
        advice: String,
    },
    /// The program, or its load generator, is not installed.
    #[error("{reason}; install it with `apt-get install {packages}`")]
    NotInstalled {
        /// The missing requirements.
        reason: String,
        /// Debian packages that contain the missing requirements.
        packages: String,
    },
    /// The input could not be generated.
    #[error("cannot generate the input of {program}: {reason}")]
    Generate {
        /// Name of the program.
        program: String,
        /// The failure, and the last line that the failed command printed, if any.
        reason: String,
    },
    /// The user asked heapdrome to stop.
    #[error("interrupted")]
    Interrupted,
    /// Only root can install packages.
    #[error("only root can install packages; run: {command}")]
    NotRoot {
        /// Command that root can run to install the packages.
        command: String,
    },
    /// The package manager failed.
    #[error("`{command}` failed: {reason}; run it yourself to see more")]
    InstallFailed {
        /// The command that failed.
        command: String,
        /// Exit status of the package manager, or the error of starting it.
        reason: String,
    },
    /// A program that the load requires does not start, or does not print its version.
    #[error("cannot run {path}: {reason}; reinstall it or remove it from PATH")]
    ProgramBroken {
        /// Path of the program.
        path: PathBuf,
        /// Error of starting the program, the status with which it ended, or a statement that it
        /// printed no version.
        reason: String,
    },
    /// The package could not be fetched.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The cache could not be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// The package in the cache is damaged.
    #[error("{package} lacks {path}; run `heapdrome cache clean` and try again")]
    SourceMissing {
        /// Name and version of the package.
        package: String,
        /// Path of the missing file, or of the folder whose number of translation units is wrong.
        path: PathBuf,
    },
    /// A file in the cache could not be written, or could not be opened after it was written.
    #[error(
        "cannot write {path}: {source}; free some space, or set HEAPDROME_CACHE to another folder"
    )]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// Error that the system returned.
        source: std::io::Error,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_nearly_right_is_guessed() {
        let unknown = crate::find("biuld").expect_err("no such program");
        assert_eq!(
            unknown.to_string(),
            "no such program: biuld (did you mean build?)"
        );
    }

    #[test]
    fn any_other_name_is_answered_with_the_list() {
        let unknown = Unknown::nearest_to("fractals");
        let names: Vec<_> = crate::list().iter().map(|it| it.name.as_str()).collect();
        assert_eq!(
            unknown.to_string(),
            format!(
                "no such program: fractals (there are: {})",
                names.join(", ")
            )
        );
    }
}
