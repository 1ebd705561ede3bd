//! What failed on which file.

use std::io;
use std::path::PathBuf;

/// A file or folder with which something could not be done.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} {}: {source}", path.display())]
pub struct FileError {
    /// What was tried.
    pub doing: &'static str,
    /// The file or folder.
    pub path: PathBuf,
    /// The reason.
    pub source: io::Error,
}

impl FileError {
    /// Returns a closure for `map_err`.
    pub fn of(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self {
            doing,
            path,
            source,
        }
    }
}
