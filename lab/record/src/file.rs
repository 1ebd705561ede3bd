//! Results on disk: written whole or not at all, read with care.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Changes, Collection, RaceResult, SCHEMA};

/// What went wrong with a file, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file could not be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The file could not be written.
    #[error("cannot write {path}: {source}; make room, or name a file in another folder")]
    Write {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The file is not a whole result.
    #[error("{path} is not a result of heapdrome ({reason}); was it cut short?")]
    NotAResult {
        /// The file.
        path: PathBuf,
        /// What the parser said.
        reason: String,
    },
    /// The file was written by a newer heapdrome.
    #[error("{path} has schema {found}, and this heapdrome reads up to {SCHEMA}; use a newer one")]
    NewerSchema {
        /// The file.
        path: PathBuf,
        /// The schema that it names.
        found: u64,
    },
}

/// What a file of results holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Saved {
    /// One race.
    Race(Box<RaceResult>),
    /// Races that belong together.
    Collection(Box<Collection>),
}

/// Reads the result of a race, or a collection of them: only a collection has `races`.
///
/// # Errors
/// When the file cannot be read, is not a whole result, or has a newer schema.
pub fn read_saved(path: &Path) -> Result<Saved, FileError> {
    let value = read_value(path)?;
    match value.get("races") {
        Some(_) => typed(path, value).map(Saved::Collection),
        None => typed(path, value).map(Saved::Race),
    }
}

/// Reads the result of one race.
///
/// # Errors
/// When the file cannot be read, is not a whole result of a race, or has a newer schema.
pub fn read_result(path: &Path) -> Result<RaceResult, FileError> {
    typed(path, read_value(path)?)
}

/// JSON of a schema that this heapdrome reads.
fn read_value(path: &Path) -> Result<serde_json::Value, FileError> {
    let text = std::fs::read(path).map_err(|source| FileError::Read {
        path: path.to_owned(),
        source,
    })?;
    let value: serde_json::Value =
        serde_json::from_slice(&text).map_err(|error| not_a_result(path, &error))?;
    match value.get("schema").and_then(serde_json::Value::as_u64) {
        Some(found) if found > u64::from(SCHEMA) => Err(FileError::NewerSchema {
            path: path.to_owned(),
            found,
        }),
        _ => Ok(value),
    }
}

fn typed<T: DeserializeOwned>(path: &Path, value: serde_json::Value) -> Result<T, FileError> {
    serde_json::from_value(value).map_err(|error| not_a_result(path, &error))
}

fn not_a_result(path: &Path, error: &serde_json::Error) -> FileError {
    FileError::NotAResult {
        path: path.to_owned(),
        reason: error.to_string(),
    }
}

/// A result as indented JSON that ends with a newline.
///
/// # Errors
/// When a value has no JSON form, which no result of a race has.
pub fn result_to_json(result: &RaceResult) -> Result<Vec<u8>, serde_json::Error> {
    indented(result)
}

/// A collection as indented JSON that ends with a newline.
///
/// # Errors
/// As [`result_to_json`].
pub fn collection_to_json(collection: &Collection) -> Result<Vec<u8>, serde_json::Error> {
    indented(collection)
}

/// A comparison of two results as indented JSON that ends with a newline.
///
/// # Errors
/// As [`result_to_json`].
pub fn changes_to_json(changes: &Changes) -> Result<Vec<u8>, serde_json::Error> {
    indented(changes)
}

fn indented(value: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    Ok(text)
}

/// Writes `contents` into a temporary file beside `path`, then renames it, so that a reader never
/// sees half of it. A special file such as `/dev/stdout` is written directly.
///
/// # Errors
/// When the file cannot be written; nothing is left behind then.
pub fn write_atomically(path: &Path, contents: &[u8]) -> Result<(), FileError> {
    let failed = |source: std::io::Error| FileError::Write {
        path: path.to_owned(),
        source,
    };
    if std::fs::metadata(path).is_ok_and(|old| !old.is_file()) {
        let mut special = std::fs::OpenOptions::new()
            .write(true)
            .open(path)
            .map_err(failed)?;
        return special.write_all(contents).map_err(failed);
    }
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    let mut file = builder
        .permissions(mode)
        .tempfile_in(folder)
        .map_err(failed)?;
    file.write_all(contents).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("r.json");
        std::fs::write(&path, text).expect("a file can be written");
        read_result(&path).expect_err("not a result").to_string()
    }

    #[test]
    fn a_newer_schema_is_named_even_if_the_rest_is_unknown() {
        assert!(message(r#"{"schema": 2, "other": 1}"#).contains("has schema 2"));
    }

    #[test]
    fn a_truncated_file_is_told_from_a_foreign_one() {
        assert!(message(r#"{"schema": 1, "comm"#).contains("cut short"));
        assert!(message("[]").contains("not a result"));
    }

    #[test]
    fn a_write_that_fails_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let missing = folder.path().join("no/such/place.json");
        assert!(write_atomically(&missing, b"x").is_err());
        assert_eq!(
            std::fs::read_dir(folder.path()).expect("readable").count(),
            0
        );
    }
}
