//! Destinations of results, checked before anything runs or is written.

use std::path::{Path, PathBuf};

use heapdrome_schema::check_writable;

use crate::arguments::{OutputArguments, STDOUT, is_stdout};
use crate::failure::Failure;

/// Files that a command line requests, each with the option that names it.
pub struct Destinations<'a>(Vec<(&'static str, &'a Path)>);

impl<'a> Destinations<'a> {
    /// Returns the requested destinations of a result: `--json`, `--csv` and `--markdown`.
    pub fn of(output: &'a OutputArguments) -> Self {
        Self::none()
            .and("--json", output.json.as_deref())
            .and("--csv", output.csv.as_deref())
            .and("--markdown", output.markdown.as_deref())
    }

    /// Creates an empty list.
    pub fn none() -> Self {
        Self(Vec::new())
    }

    /// Creates a list of one file.
    pub fn one(option: &'static str, path: &'a Path) -> Self {
        Self(vec![(option, path)])
    }

    /// Adds another file, if it was requested.
    #[must_use]
    pub fn and(mut self, option: &'static str, path: Option<&'a Path>) -> Self {
        self.0.extend(path.map(|path| (option, path)));
        self
    }

    /// Returns whether a destination is standard output, which then receives nothing else.
    pub fn take_stdout(&self) -> bool {
        self.0.iter().any(|(_, path)| is_stdout(path))
    }

    /// Fails early if a file could not be written later, or if two outputs conflict.
    ///
    /// # Errors
    /// Returns an error if two destinations are one file, if a destination is also in `results`,
    /// the files that the command reads, or if a destination cannot be written.
    pub fn check(&self, results: &[&Path]) -> Result<(), Failure> {
        for (place, one) in self.0.iter().enumerate() {
            for other in &self.0[..place] {
                refuse_one_file(*other, *one)?;
            }
        }
        let files = self.0.iter().map(|(_, path)| *path);
        for path in files.filter(|path| !is_stdout(path)) {
            refuse_own_source(path, results)?;
            check_writable(path).map_err(Failure::machine)?;
        }
        Ok(())
    }
}

/// Refuses two outputs in one file, because only the later would remain.
fn refuse_one_file(one: (&str, &Path), other: (&str, &Path)) -> Result<(), Failure> {
    let same = identity(one.1).is_some_and(|file| identity(other.1) == Some(file));
    if !same {
        return Ok(());
    }
    let [one, other] = [one, other].map(|(option, path)| format!("{option} {}", path.display()));
    Err(Failure::Usage(format!(
        "{one} and {other} go to the same place; name another file for one of them"
    )))
}

/// Refuses to overwrite a result that the command reads.
fn refuse_own_source(path: &Path, results: &[&Path]) -> Result<(), Failure> {
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    let target = real(path);
    if target.is_some() && results.iter().any(|result| real(result) == target) {
        return Err(Failure::Usage(format!(
            "{} is an input; name another file to write",
            path.display()
        )));
    }
    Ok(())
}

/// Refuses standard output in place of a folder for several files.
///
/// # Errors
/// Returns an error for standard output.
pub fn refuse_stdout(option: &str, folder: &Path) -> Result<(), Failure> {
    match is_stdout(folder) {
        true => Err(Failure::Usage(format!(
            "{option} {}: several files are written; name a folder for them",
            folder.display()
        ))),
        false => Ok(()),
    }
}

/// Refuses to overwrite an existing file without `force`. A special file such as `/dev/stdout` may
/// be written.
///
/// # Errors
/// Returns an error if the file exists and `force` is not set.
pub fn refuse_overwriting(path: &Path, force: bool) -> Result<(), Failure> {
    if path.is_file() && !force {
        return Err(Failure::Usage(format!(
            "{} exists; pass --force to overwrite it, or name another file",
            path.display()
        )));
    }
    Ok(())
}

/// Returns a name that all paths of one file share. Returns `None` for a file that accepts several
/// outputs, such as a pipe, and for a folder.
fn identity(path: &Path) -> Option<PathBuf> {
    if is_stdout(path) {
        return Some(PathBuf::from(STDOUT));
    }
    if let Ok(there) = std::fs::canonicalize(path) {
        return there.is_file().then_some(there);
    }
    let path = std::path::absolute(path).ok()?;
    let folder = path.parent().map(std::fs::canonicalize);
    match (folder, path.file_name()) {
        (Some(Ok(folder)), Some(name)) => Some(folder.join(name)),
        _ => Some(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_names_of_one_file_are_refused_and_two_files_are_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("sub")).expect("a folder");
        std::fs::write(at("old"), "").expect("written");
        std::os::unix::fs::symlink("old", at("link")).expect("linked");
        let told = |one: &str, other: &str| {
            let (one, other) = (at(one), at(other));
            let asked = Destinations::one("--json", &one).and("--csv", Some(&other));
            asked.check(&[]).err().map(|failure| failure.to_string())
        };
        for (one, other) in [
            ("new", "new"),
            ("new", "./new"),
            ("new", "sub/../new"),
            ("old", "link"),
        ] {
            let told = told(one, other).unwrap_or_default();
            assert!(
                told.contains("go to the same place"),
                "{one} {other}: {told}"
            );
        }
        assert_eq!(told("new", "old"), None);
        assert_eq!(told("sub/new", "new"), None);
    }

    #[test]
    fn standard_output_takes_one_of_them() {
        let stdout = Path::new("-");
        let asked = || Destinations::one("--json", stdout).and("--csv", None);
        assert!(asked().take_stdout());
        assert!(asked().check(&[]).is_ok());
        let again = asked().and("--markdown", Some(Path::new("/dev/stdout")));
        let told = again.check(&[]).err().map(|failure| failure.to_string());
        let told = told.unwrap_or_default();
        assert!(
            told.starts_with("--json - and --markdown /dev/stdout go"),
            "{told}"
        );
        assert!(!Destinations::one("--csv", Path::new("./-")).take_stdout());
    }
}
