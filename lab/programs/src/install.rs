//! Installs the packages that programs need, with apt-get.

use std::process::Command;

use heapdrome_system::rights::is_root;

use crate::{Availability, Program, ProgramError};

/// Missing packages, and the command that installs them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Debian packages, each once, sorted.
    pub packages: Vec<String>,
    /// The command for root to run.
    pub command: Vec<String>,
}

/// Returns the packages that the programs lack, or `None` if nothing is missing.
pub fn missing(programs: &[&Program]) -> Option<Missing> {
    let lacks = |program: &&Program| match program.availability() {
        Availability::Available => Vec::new(),
        Availability::NotInstalled { packages, .. } => packages,
    };
    Missing::of(programs.iter().flat_map(lacks).collect())
}

impl Missing {
    fn of(mut packages: Vec<String>) -> Option<Self> {
        packages.sort_unstable();
        packages.dedup();
        if packages.is_empty() {
            return None;
        }
        let words = ["apt-get", "install", "--yes", "--no-install-recommends"];
        let command = words.map(str::to_owned).into_iter();
        Some(Self {
            command: command.chain(packages.iter().cloned()).collect(),
            packages,
        })
    }

    /// Returns a warning to print before the command runs; `None` if no package starts a service.
    pub fn warning(&self) -> Option<&'static str> {
        self.packages
            .iter()
            .any(|it| it == "redis-server")
            .then_some(
                "The Debian package redis-server starts a Redis server, now and at each boot; \
                 heapdrome does not need that server: `systemctl disable --now redis-server` stops \
                 it",
            )
    }

    /// Announces the warning, if any, and the exact command, then runs the command on the user's
    /// terminal.
    ///
    /// # Errors
    /// Returns an error if the user is not root; the error names the command to run. Also returns
    /// an error if apt-get is missing or fails.
    pub fn install(&self, announce: &mut dyn FnMut(&str)) -> Result<(), ProgramError> {
        self.install_as(is_root(), announce)
    }

    fn install_as(&self, root: bool, announce: &mut dyn FnMut(&str)) -> Result<(), ProgramError> {
        let line = self.command.join(" ");
        if !root {
            return Err(ProgramError::NotRoot {
                command: format!("sudo {line}"),
            });
        }
        if let Some(warning) = self.warning() {
            announce(warning);
        }
        announce(&format!("running: {line}"));
        let failed = |reason: String| ProgramError::InstallFailed {
            command: line.clone(),
            reason,
        };
        let status = Command::new(&self.command[0])
            .args(&self.command[1..])
            // The packages must not ask the user questions.
            .env("DEBIAN_FRONTEND", "noninteractive")
            .env_remove("LD_PRELOAD")
            .status()
            .map_err(|error| failed(error.to_string()))?;
        if status.success() {
            Ok(())
        } else {
            Err(failed(status.to_string()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Missing {
        let packages = ["z3", "redis-server", "z3"].map(String::from).to_vec();
        Missing::of(packages).expect("something is missing")
    }

    #[test]
    fn the_command_names_each_package_once() {
        assert_eq!(two().packages, ["redis-server", "z3"]);
        assert_eq!(
            two().command.join(" "),
            "apt-get install --yes --no-install-recommends redis-server z3"
        );
        assert_eq!(Missing::of(Vec::new()), None);
    }

    #[test]
    fn who_is_not_root_gets_the_line_and_nothing_runs() {
        let mut said = Vec::new();
        let error = two().install_as(false, &mut |line| said.push(line.to_owned()));
        assert_eq!(
            error.expect_err("not root").to_string(),
            "only root can install packages; run: sudo apt-get install --yes \
             --no-install-recommends redis-server z3"
        );
        assert!(said.is_empty());
    }

    #[test]
    fn the_command_is_announced_before_it_runs_and_its_failure_told() {
        let mut missing = two();
        missing.command = ["false", "redis-server"].map(String::from).to_vec();
        let mut said = Vec::new();
        let error = missing.install_as(true, &mut |line| said.push(line.to_owned()));
        assert!(said[0].contains("starts a Redis server"), "{said:?}");
        assert_eq!(said[1], "running: false redis-server");
        assert_eq!(
            error.expect_err("it fails").to_string(),
            "`false redis-server` failed: exit status: 1; run it yourself to see more"
        );
    }
}
