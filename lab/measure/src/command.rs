//! Checks of a command's working folder and standard input, and the lookup of its program as in a
//! shell, once before the first run.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use heapdrome_schema::Plan;

use crate::MeasureError;

/// Search path if `PATH` is not set.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Checks that `folder`, the working folder of the plan's commands, is an existing folder.
pub(crate) fn check_directory(folder: &Path) -> Result<(), MeasureError> {
    let what = "the working folder";
    match std::fs::metadata(folder) {
        Ok(data) if data.is_dir() => Ok(()),
        Ok(_) => Err(unusable(what, folder, libc::ENOTDIR)),
        Err(source) => Err(MeasureError::Unusable {
            what,
            path: folder.to_owned(),
            source,
        }),
    }
}

/// Returns the path of the standard input of the plan's command, after checking that it can be
/// opened and is not a folder. Returns `/dev/null` if the plan names no file.
pub(crate) fn stdin(plan: &Plan) -> Result<PathBuf, MeasureError> {
    let Some(path) = &plan.options.stdin else {
        return Ok("/dev/null".into());
    };
    let path = plan.started_in.join(path);
    let what = "the standard input";
    match std::fs::File::open(&path).and_then(|file| file.metadata()) {
        Ok(data) if data.is_dir() => Err(unusable(what, &path, libc::EISDIR)),
        Ok(_) => Ok(path),
        Err(source) => Err(MeasureError::Unusable { what, path, source }),
    }
}

fn unusable(what: &'static str, path: &Path, error: i32) -> MeasureError {
    let source = std::io::Error::from_raw_os_error(error);
    MeasureError::Unusable {
        what,
        path: path.to_owned(),
        source,
    }
}

/// Returns the path of the program that `command` names, resolved from `directory`. A name without
/// a slash is searched for in the `PATH` of `variables`.
pub(crate) fn program(
    command: &str,
    directory: &Path,
    variables: &BTreeMap<OsString, OsString>,
) -> Result<PathBuf, MeasureError> {
    if command.is_empty() {
        return Err(MeasureError::EmptyCommand);
    }
    let not_found = || MeasureError::CommandNotFound {
        command: command.to_owned(),
    };
    if command.contains('/') {
        let path = directory.join(command);
        return match state(&path) {
            State::Executable => Ok(path),
            State::Missing => Err(not_found()),
            State::Useless(reason) => Err(not_executable(command, reason)),
        };
    }
    let folders = variables
        .get(OsStr::new("PATH"))
        .map_or(DEFAULT_PATH.into(), Clone::clone);
    let mut useless = None;
    for folder in std::env::split_paths(&folders) {
        let path = directory.join(folder).join(command);
        match state(&path) {
            State::Executable => return Ok(path),
            State::Missing => {}
            State::Useless(reason) => useless = useless.or(Some(reason)),
        }
    }
    Err(useless.map_or_else(not_found, |reason| not_executable(command, reason)))
}

fn not_executable(command: &str, reason: &str) -> MeasureError {
    MeasureError::NotExecutable {
        command: command.to_owned(),
        reason: reason.to_owned(),
    }
}

enum State {
    Executable,
    Missing,
    Useless(&'static str),
}

fn state(path: &Path) -> State {
    match std::fs::metadata(path) {
        Err(_) => State::Missing,
        Ok(data) if data.is_dir() => State::Useless("it is a folder"),
        Ok(data) if data.permissions().mode() & 0o111 == 0 => {
            State::Useless("permission denied; it has no x right (chmod +x)")
        }
        Ok(_) => State::Executable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_as_the_shell_finds_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("bin dir/tool");
        std::fs::create_dir(folder.path().join("bin dir")).expect("a folder");
        std::fs::write(&path, "#!/bin/sh\n").expect("written");
        let search = OsString::from(format!(
            "/nowhere:{}",
            folder.path().join("bin dir").display()
        ));
        let variables = BTreeMap::from([(OsString::from("PATH"), search)]);
        let find = |command: &str| program(command, folder.path(), &variables);

        let error = find("tool").expect_err("no x right").to_string();
        assert!(error.contains("chmod"), "{error}");
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&path, mode).expect("rights");
        assert_eq!(find("tool").expect("found"), path);
        assert_eq!(find("bin dir/tool").expect("found"), path);
        assert!(matches!(
            find("absent"),
            Err(MeasureError::CommandNotFound { .. })
        ));
        assert!(matches!(
            find("./absent"),
            Err(MeasureError::CommandNotFound { .. })
        ));
        assert!(matches!(
            find("./bin dir"),
            Err(MeasureError::NotExecutable { .. })
        ));
        assert!(matches!(find(""), Err(MeasureError::EmptyCommand)));
    }
}
