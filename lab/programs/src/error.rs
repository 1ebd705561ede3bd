//! What can be wrong with a program, and what to do about it.

use std::path::PathBuf;

use heapdrome_packages::{CacheError, FetchError};
use heapdrome_schema::nearest_or_all;

/// There is no program of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no program named {name}; {advice}")]
pub struct Unknown {
    /// The name that was asked for.
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

/// Why a program cannot be made ready.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// There is no such program.
    #[error(transparent)]
    Unknown(#[from] Unknown),
    /// A word is no parameter with a value.
    #[error("{program} cannot understand {word}; write KEY=VALUE, with one of the keys {known}")]
    NotASetting {
        /// The program.
        program: String,
        /// The word.
        word: String,
        /// The parameters that there are.
        known: String,
    },
    /// The program has no such parameter.
    #[error("{program} has no parameter {setting}; it has: {known}")]
    UnknownSetting {
        /// The program.
        program: String,
        /// The parameter.
        setting: String,
        /// The parameters that there are.
        known: String,
    },
    /// A parameter is given twice.
    #[error("the parameter {setting} is given twice")]
    SettingTwice {
        /// The parameter.
        setting: String,
    },
    /// The parameter cannot have this value.
    #[error("the parameter {setting} cannot be {value}; it can be: {possible}")]
    BadValue {
        /// The parameter.
        setting: String,
        /// The value.
        value: String,
        /// The values that it can have.
        possible: String,
    },
    /// Something that the program needs is not installed.
    #[error("{program} needs {what}, and {looked_for} was not found in PATH; {advice}")]
    ProgramMissing {
        /// The program of heapdrome's.
        program: String,
        /// What kind of program it needs.
        what: String,
        /// The names that were looked for.
        looked_for: String,
        /// What to install.
        advice: String,
    },
    /// The program, or its load generator, is not installed.
    #[error("{reason}; install it with `apt-get install {packages}`")]
    NotInstalled {
        /// What is missing.
        reason: String,
        /// The Debian packages that bring it.
        packages: String,
    },
    /// The input could not be generated.
    #[error("cannot generate the input of {program}: {reason}")]
    Generate {
        /// The program.
        program: String,
        /// What went wrong, and the last that was said about it.
        reason: String,
    },
    /// The person asked heapdrome to stop.
    #[error("interrupted")]
    Interrupted,
    /// Packages are installed by root only.
    #[error("only root can install packages; run: {command}")]
    NotRoot {
        /// The line to run.
        command: String,
    },
    /// The package manager failed.
    #[error("`{command}` failed: {reason}; run it yourself to see more")]
    InstallFailed {
        /// The command.
        command: String,
        /// How it ended.
        reason: String,
    },
    /// Something that the program needs does not start.
    #[error("cannot run {path}: {reason}; install it anew, or take it out of PATH")]
    ProgramBroken {
        /// The program.
        path: PathBuf,
        /// What it said.
        reason: String,
    },
    /// The package could not be had.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The cache could not be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// The package in the cache is damaged.
    #[error("{package} lacks {path}; run `heapdrome cache clean` and try again")]
    SourceMissing {
        /// The package.
        package: String,
        /// The file.
        path: PathBuf,
    },
    /// A file in the cache could not be written.
    #[error("cannot write {path}: {source}; make room, or set HEAPDROME_CACHE to another folder")]
    Write {
        /// The file.
        path: PathBuf,
        /// The reason.
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
            "there is no program named biuld; did you mean build?"
        );
    }

    #[test]
    fn any_other_name_is_answered_with_the_list() {
        let unknown = Unknown::nearest_to("fractals");
        let names: Vec<_> = crate::list().iter().map(|it| it.name.as_str()).collect();
        assert_eq!(
            unknown.to_string(),
            format!(
                "there is no program named fractals; there are: {}",
                names.join(", ")
            )
        );
    }
}
