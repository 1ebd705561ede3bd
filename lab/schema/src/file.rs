//! Reading and checking of result files, and the JSON form in which they are written.

use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::gzip::{decompressed, is_compressed};
use crate::{Collection, RaceResult, SCHEMA};

/// Reason why a file cannot be read as a result.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be opened or read.
    #[error("cannot read {path}: {source}")]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Error that the system returned.
        source: std::io::Error,
    },
    /// The file is empty, except for white space.
    #[error("{path} is empty")]
    Empty {
        /// Path of the file.
        path: PathBuf,
    },
    /// The file is compressed by gzip and cannot be decompressed.
    #[error("{path} is a damaged gzip file: {reason}")]
    DamagedGzip {
        /// Path of the file.
        path: PathBuf,
        /// Error that the decompression returned.
        reason: std::io::Error,
    },
    /// The end of the file is missing.
    #[error("{path} ends in the middle (was it cut short?)")]
    CutShort {
        /// Path of the file.
        path: PathBuf,
    },
    /// The file is not JSON, or lacks the field `heapdrome` or `schema` of a result.
    #[error("{path} is not a heapdrome result")]
    Foreign {
        /// Path of the file.
        path: PathBuf,
    },
    /// The file was written by `compare`.
    #[error("{path} is a comparison of two results; name one of the results themselves")]
    Comparison {
        /// Path of the file.
        path: PathBuf,
    },
    /// The schema of the file is unknown to this version of heapdrome.
    #[error("{path} has schema {found}; this heapdrome reads 1 to {SCHEMA}")]
    Schema {
        /// Path of the file.
        path: PathBuf,
        /// Value of the schema field in the file.
        found: String,
    },
    /// The file has the schema of a result, but its fields cannot be parsed.
    #[error("{path} is a damaged heapdrome result: {reason}")]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Description of the fault, as a phrase.
        reason: String,
    },
}

/// Content of a result file.
#[derive(Clone, Debug, PartialEq)]
pub enum Saved {
    /// One race.
    Race(Box<RaceResult>),
    /// Measurements that belong together, such as the races of a sweep.
    Collection(Box<Collection>),
}

/// Byte order mark of UTF-8, which some editors add to the beginning of a text. Reading skips it.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Returns whether a path stands for standard input. A file that is named `-` is read as `./-`.
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Returns the name of `path` for messages and pages; `standard input` for `-`.
pub fn source_name(path: &Path) -> &Path {
    match is_stdin(path) {
        true => Path::new("standard input"),
        false => path,
    }
}

/// Reads the result of a race or of a collection. The field `races` identifies a collection. The
/// file may be compressed by gzip, regardless of its name. The path `-` is standard input, which
/// can be read only once.
///
/// # Errors
/// When the file cannot be read, is not a complete result, or has an unknown schema.
pub fn read_saved(path: &Path) -> Result<Saved, ReadError> {
    let value = read_value(path)?;
    let path = source_name(path);
    match value.get("races") {
        Some(_) => typed(path, value).map(Saved::Collection),
        None if value.get("pairs").is_some() => Err(ReadError::Comparison {
            path: path.to_owned(),
        }),
        None => typed(path, value).map(Saved::Race),
    }
}

/// Reads the result of one race.
///
/// # Errors
/// In the cases of [`read_saved`], and when the file is not a single race.
pub fn read_result(path: &Path) -> Result<RaceResult, ReadError> {
    typed(source_name(path), read_value(path)?)
}

/// Reads the JSON of a heapdrome result and checks that its schema is supported.
fn read_value(path: &Path) -> Result<Value, ReadError> {
    let bytes = bytes_of(path);
    let path = || source_name(path).to_owned();
    let mut bytes = bytes.map_err(|source| ReadError::Unreadable {
        path: path(),
        source,
    })?;
    if is_compressed(&bytes) {
        bytes = decompressed(&bytes).map_err(|reason| match reason.kind() {
            ErrorKind::UnexpectedEof => ReadError::CutShort { path: path() },
            _ => ReadError::DamagedGzip {
                path: path(),
                reason,
            },
        })?;
    }
    let text = bytes.strip_prefix(MARK).unwrap_or(&bytes);
    if text.trim_ascii().is_empty() {
        return Err(ReadError::Empty { path: path() });
    }
    let value: Value = serde_json::from_slice(text).map_err(|error| match error.is_eof() {
        true => ReadError::CutShort { path: path() },
        false => ReadError::Foreign { path: path() },
    })?;
    // Every version of heapdrome writes both fields.
    let (Some(Value::String(_)), Some(schema)) = (value.get("heapdrome"), value.get("schema"))
    else {
        return Err(ReadError::Foreign { path: path() });
    };
    let known = 1..=u64::from(SCHEMA);
    match schema.as_u64().is_some_and(|found| known.contains(&found)) {
        true => Ok(value),
        false => Err(ReadError::Schema {
            path: path(),
            found: schema.to_string(),
        }),
    }
}

fn bytes_of(path: &Path) -> std::io::Result<Vec<u8>> {
    if !is_stdin(path) {
        return std::fs::read(path);
    }
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn typed<T: DeserializeOwned>(path: &Path, value: Value) -> Result<T, ReadError> {
    serde_json::from_value(value).map_err(|error| ReadError::Damaged {
        path: path.to_owned(),
        reason: error.to_string(),
    })
}

/// Returns a result of any kind as indented JSON that ends with a newline.
///
/// # Errors
/// When a value cannot be written as JSON, which never happens for a result.
pub fn to_json(result: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let mut text = serde_json::to_vec_pretty(result)?;
    text.push(b'\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compressed;

    /// Returns the error message for a file with this content, without the file's path.
    #[track_caller]
    fn message(text: impl AsRef<[u8]>) -> String {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("r.json");
        std::fs::write(&path, text).expect("a file can be written");
        let told = read_saved(&path).expect_err("not a result").to_string();
        let path = path.display().to_string();
        let rest = told.strip_prefix(&path).expect("it begins with the path");
        rest.trim_start().to_owned()
    }

    #[test]
    fn a_schema_that_is_not_known_is_named_whatever_the_rest_is() {
        for found in ["0", "2", "-1", "1.5", "\"1\""] {
            let told = message(format!(r#"{{"heapdrome": "9", "schema": {found}}}"#));
            let expected = format!("has schema {found}; this heapdrome reads 1 to {SCHEMA}");
            assert_eq!(told, expected);
        }
    }

    #[test]
    fn what_is_no_result_is_told_from_half_of_one() {
        assert_eq!(message(""), "is empty");
        assert_eq!(message(" \n"), "is empty");
        let cut = "ends in the middle (was it cut short?)";
        assert_eq!(message(r#"{"schema": 1, "comm"#), cut);
        let foreign = [
            "[]",
            "[1, 2]",
            "3",
            "no JSON",
            "{}",
            r#"{"name": "x"}"#,
            r#"{"schema": 1, "races": []}"#,
            r#"{"schema": 1, "heapdrome": 3}"#,
            r#"{"heapdrome": "0.1.0"}"#,
        ];
        for text in foreign {
            assert_eq!(message(text), "is not a heapdrome result", "{text}");
        }
    }

    #[test]
    fn what_editors_and_packers_leave_is_known() {
        let marked = "\u{feff}{\"heapdrome\": \"9\", \"schema\": 2}";
        assert!(message(marked).starts_with("has schema 2"));
        assert_eq!(message("\u{feff}"), "is empty");
    }

    #[test]
    fn a_compressed_file_is_read_as_what_is_in_it() {
        let packed = |text: &str| compressed(text.as_bytes()).expect("compressed");
        let whole = packed(r#"{"heapdrome": "9", "schema": 2}"#);
        assert!(message(&whole).starts_with("has schema 2"));
        assert_eq!(message(packed("")), "is empty");
        assert_eq!(message(packed("no JSON")), "is not a heapdrome result");
        let cut = "ends in the middle (was it cut short?)";
        assert_eq!(message(&whole[..whole.len() / 2]), cut);
        assert_eq!(message(b"\x1f\x8b\x08"), cut);
        let mut damaged = whole;
        *damaged.last_mut().expect("it has bytes") ^= 1;
        let told = message(damaged);
        assert!(told.starts_with("is a damaged gzip file: "), "{told}");
    }

    #[test]
    fn what_is_wrong_with_a_heapdrome_file_is_said() {
        let told = message(r#"{"schema": 1, "heapdrome": "0.1.0", "races": 3}"#);
        assert!(
            told.starts_with("is a damaged heapdrome result: "),
            "{told}"
        );
        let told = message(r#"{"schema": 1, "heapdrome": "0.1.0", "pairs": []}"#);
        assert!(told.starts_with("is a comparison of two results"), "{told}");
    }
}
