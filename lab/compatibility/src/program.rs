//! Descriptions of the programs, from data files that are compiled in.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde::Deserialize;

/// PATH of the scripts: the folders with programs of the system's packages, independent of the
/// caller's environment.
pub(crate) const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// Program, or several programs that work together, with a script that tests them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// The name on the command line.
    pub name: String,
    /// Description of the script's work, in one line.
    pub does: String,
    /// Files that must exist: programs by name, anything else by absolute path.
    needs: Vec<String>,
    /// Debian packages that contain the required files.
    packages: Vec<String>,
    /// Whether the program belongs to the core, which `tests/core.rs` runs.
    #[serde(default)]
    pub core: bool,
    /// Time limit of the script in seconds.
    #[serde(default = "a_minute")]
    pub(crate) seconds: u64,
    /// Script that bash runs in a new folder up to the first failing command. Exit status 0 means
    /// success; the last line of standard output states the result.
    pub(crate) script: String,
}

fn a_minute() -> u64 {
    60
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    program: Vec<Program>,
}

/// Returns all programs, those of the core first.
///
/// # Errors
///
/// Returns an error if a data file is invalid.
pub fn programs() -> Result<Vec<Program>, toml::de::Error> {
    let files = [
        include_str!("../programs/core.toml"),
        include_str!("../programs/further.toml"),
    ];
    let mut all = Vec::new();
    for text in files {
        all.extend(toml::from_str::<File>(text)?.program);
    }
    Ok(all)
}

impl Program {
    /// Returns a text that names the missing files and the packages to install, or `None` if all
    /// files exist.
    #[must_use]
    pub fn missing(&self) -> Option<String> {
        let absent: Vec<&str> = self.needs.iter().map(String::as_str).collect();
        let absent: Vec<&str> = absent.into_iter().filter(|name| !exists(name)).collect();
        if absent.is_empty() {
            return None;
        }
        Some(format!(
            "missing {} (apt install {})",
            absent.join(", "),
            self.packages.join(" ")
        ))
    }
}

fn exists(name: &str) -> bool {
    let runs = |path: &Path| {
        path.metadata()
            .is_ok_and(|status| status.is_file() && status.permissions().mode() & 0o111 != 0)
    };
    if name.starts_with('/') {
        return Path::new(name).exists();
    }
    PATH.split(':')
        .any(|folder| runs(&Path::new(folder).join(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_files_are_right_and_names_are_unique() {
        let all = programs().expect("the data files are right");
        let mut names: Vec<_> = all.iter().map(|program| &program.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all.len());
        assert!(all.iter().filter(|program| program.core).count() >= 7);
    }

    #[test]
    fn what_is_missing_is_named_with_its_package() {
        let mut program = programs().expect("the data files are right").remove(0);
        program.needs = vec![
            "sh".into(),
            "no-such-program".into(),
            "/no/such/file".into(),
        ];
        program.packages = vec!["brings-it".into()];
        let missing = program.missing();
        let expected = "missing no-such-program, /no/such/file (apt install brings-it)";
        assert_eq!(missing.as_deref(), Some(expected));
    }
}
