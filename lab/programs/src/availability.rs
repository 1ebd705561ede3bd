//! Checks whether the requirements of a program are installed, and names the missing packages.

use std::ffi::OsString;

use crate::definition::{Need, Program};
use crate::tools::{self, Tool};

/// Availability of a program on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Availability {
    /// All requirements of the program are installed.
    Available,
    /// At least one requirement of the program is not installed.
    NotInstalled {
        /// The missing requirements, in one line.
        reason: String,
        /// Debian packages that contain the missing requirements, each once, sorted.
        packages: Vec<String>,
    },
}

impl Program {
    pub(crate) fn availability_in(&self, path: Option<&OsString>) -> Availability {
        let missing: Vec<_> = self
            .needs
            .iter()
            .filter(|need| need.find_in(path).is_none())
            .collect();
        if missing.is_empty() {
            return Availability::Available;
        }
        let reasons: Vec<_> = missing.iter().map(|need| need.absence()).collect();
        let mut packages: Vec<_> = missing.iter().map(|need| need.package.clone()).collect();
        packages.sort_unstable();
        packages.dedup();
        Availability::NotInstalled {
            reason: format!("{} needs {}", self.name, reasons.join(", and ")),
            packages,
        }
    }
}

impl Need {
    /// Returns the program under the first of its names that is installed in `path`, a list like
    /// `PATH`.
    pub(crate) fn find_in(&self, path: Option<&OsString>) -> Option<Tool> {
        self.names
            .iter()
            .find_map(|name| tools::find_program(name, path))
    }

    fn absence(&self) -> String {
        let names = self.names.join(" or ");
        let place = if names.starts_with('/') {
            "does not exist"
        } else {
            "was not found in PATH"
        };
        format!("{}, and {names} {place}", self.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list;

    #[test]
    fn without_a_path_every_program_says_what_to_install() {
        let empty = tempfile::tempdir().expect("a temporary folder");
        let path = OsString::from(empty.path());
        for program in list() {
            let in_path = program
                .needs
                .iter()
                .any(|need| !need.names[0].starts_with('/'));
            match program.availability_in(Some(&path)) {
                Availability::NotInstalled { reason, packages } => {
                    assert!(reason.starts_with(&program.name), "{reason}");
                    assert!(!reason.contains('\n'), "{reason}");
                    assert!(!packages.is_empty(), "{reason}");
                }
                Availability::Available => assert!(!in_path, "{}", program.name),
            }
        }
    }

    #[test]
    fn what_is_missing_is_told_in_one_line() {
        let empty = tempfile::tempdir().expect("a temporary folder");
        let path = OsString::from(empty.path());
        let build = crate::find("build").expect("the program is there");
        assert_eq!(
            build.availability_in(Some(&path)),
            Availability::NotInstalled {
                reason: "build needs a C++ compiler, and g++ or clang++ was not found in PATH, \
                         and an archiver, and ar was not found in PATH, and a program that runs a \
                         build, and ninja or ninja-build or make was not found in PATH"
                    .to_owned(),
                packages: ["binutils", "g++", "ninja-build"]
                    .map(String::from)
                    .to_vec(),
            }
        );
    }
}
