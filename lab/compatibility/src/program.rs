//! The programs, as data.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde::Deserialize;

/// Where scripts look for programs: what the system's packages installed, whoever calls.
pub(crate) const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// One program, or a few that work together.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// The name by which it is asked for.
    pub name: String,
    /// What the script has it do.
    pub does: String,
    /// Files that must exist: programs by name, anything else by path.
    needs: Vec<String>,
    /// The Debian packages that bring them.
    packages: Vec<String>,
    /// Whether every change is tested with it.
    #[serde(default)]
    pub core: bool,
    /// How long it may take, in seconds.
    #[serde(default = "a_minute")]
    pub(crate) seconds: u64,
    /// Run by bash in an empty folder, to the first command that fails. Status 0 means that all was
    /// right; the last line of its output says what was done.
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

/// All programs, those of the core first.
///
/// # Errors
///
/// Where a data file is wrong.
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
    /// What is not installed, and which packages bring it; `None` where all is there.
    #[must_use]
    pub fn missing(&self) -> Option<String> {
        let absent: Vec<&str> = self.needs.iter().map(String::as_str).collect();
        let absent: Vec<&str> = absent.into_iter().filter(|name| !exists(name)).collect();
        if absent.is_empty() {
            return None;
        }
        Some(format!(
            "no {} here (apt install {})",
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
        let expected = "no no-such-program, /no/such/file here (apt install brings-it)";
        assert_eq!(missing.as_deref(), Some(expected));
    }
}
