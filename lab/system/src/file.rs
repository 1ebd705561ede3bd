//! Errors that name the file and the failed operation.

use std::io;
use std::path::PathBuf;

/// Failure of an operation on a file or folder.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} {}: {source}", path.display())]
pub struct FileError {
    /// Operation that failed, such as `read`; follows `cannot` in the message.
    pub doing: &'static str,
    /// Path of the file or folder.
    pub path: PathBuf,
    /// Error that the system returned.
    pub source: io::Error,
}

impl FileError {
    /// Returns a closure for `map_err` that adds the operation and the path.
    pub fn of(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self {
            doing,
            path,
            source,
        }
    }
}
