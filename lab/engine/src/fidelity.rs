//! Result of a trace's latest check. A file beside the trace contains the result, and races of the
//! trace read that file.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use heapdrome_schema::{
    Collection, Fidelity, ReadError, Saved, read_saved, to_json, write_atomically,
};

use crate::failure::Failure;

/// Suffix that is appended to the file name of the trace.
const ENDING: &str = ".fidelity.json";

/// Returns the path of the file for a trace's check.
pub fn path(trace: &Path) -> PathBuf {
    let mut name = OsString::from(trace.as_os_str());
    name.push(ENDING);
    PathBuf::from(name)
}

/// Returns the latest check of one process of a trace. If the file beside the trace is unusable, or
/// is the check of another trace or process, returns a note for the reader instead. Returns neither
/// a check nor a note if there is no such file.
pub fn read(trace: &Path, sha256: &str, process: u32) -> (Option<Fidelity>, Option<String>) {
    let path = path(trace);
    let file = path.display();
    let note = match read_saved(&path) {
        Ok(Saved::Collection(check)) => match check.fidelity() {
            Some(known) if known.trace_sha256 != sha256 => {
                format!("{file} is the check of another trace, and is ignored")
            }
            Some(known) if known.process != process => format!(
                "{file} is the check of process {}, not of {process}, and is ignored",
                known.process
            ),
            Some(known) => return (Some(known.clone()), None),
            None => format!("{file} is no check of a trace, and is ignored"),
        },
        Ok(Saved::Race(_)) => format!("{file} is no check of a trace, and is ignored"),
        Err(ReadError::Unreadable { .. }) if !path.exists() => return (None, None),
        Err(error) => format!("{error}; it is ignored"),
    };
    (None, Some(note))
}

/// Checks that a result may be written beside the trace: no file exists there, or an earlier check
/// wrote it.
///
/// # Errors
/// When a file that is not a check's result exists there.
pub fn check_replaceable(trace: &Path) -> Result<(), Failure> {
    let path = path(trace);
    if std::fs::symlink_metadata(&path).is_err() {
        return Ok(());
    }
    match read_saved(&path) {
        Ok(Saved::Collection(check)) if check.fidelity().is_some() => Ok(()),
        _ => Err(Failure::Usage(format!(
            "{} exists and is not the check of a trace; move it away, because the result is written there",
            path.display()
        ))),
    }
}

/// Writes the result of a check beside its trace, and returns the path of the file.
///
/// # Errors
/// When a file that is not a check's result exists there, or the result cannot be written.
pub fn write(trace: &Path, check: &Collection) -> Result<PathBuf, Failure> {
    check_replaceable(trace)?;
    let bytes = to_json(check).map_err(Failure::machine)?;
    let path = path(trace);
    write_atomically(&path, &bytes).map_err(Failure::machine)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use heapdrome_schema::Purpose;

    use super::*;
    use crate::kept::started;

    fn check(sha256: &str) -> Collection {
        let fidelity = Fidelity {
            trace_sha256: sha256.to_owned(),
            process: 3,
            command: vec!["app".to_owned()],
            checked: String::new(),
            entrants: Vec::new(),
            rounds: 5,
            checks: Vec::new(),
        };
        started("check", Purpose::Check(Box::new(fidelity)), Vec::new())
    }

    #[test]
    fn a_check_is_read_back_and_that_of_another_trace_or_process_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let trace = folder.path().join("app.trace");
        assert_eq!(read(&trace, "aa", 3), (None, None));
        let path = write(&trace, &check("aa")).expect("written");
        assert_eq!(path, folder.path().join("app.trace.fidelity.json"));
        assert!(read(&trace, "aa", 3).0.is_some());
        let (known, note) = read(&trace, "bb", 3);
        assert!(known.is_none() && note.expect("a note").contains("another trace"));
        let (known, note) = read(&trace, "aa", 4);
        assert!(known.is_none() && note.expect("a note").contains("process 3"));
        write(&trace, &check("bb")).expect("a check replaces a check");
        assert!(read(&trace, "bb", 3).0.is_some());
    }

    #[test]
    fn a_file_of_anyone_else_is_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let trace = folder.path().join("app.trace");
        for text in ["{}", "", "{\"mine\": 1}"] {
            std::fs::write(path(&trace), text).expect("written");
            let error = write(&trace, &check("aa"))
                .expect_err("refused")
                .to_string();
            assert!(error.contains("move it away"), "{error}");
            assert_eq!(
                std::fs::read_to_string(path(&trace)).expect("it is there"),
                text
            );
            let (known, note) = read(&trace, "aa", 3);
            assert!(known.is_none() && note.is_some());
        }
    }
}
