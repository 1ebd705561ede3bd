//! Why the cache cannot be used.

use std::path::{Path, PathBuf};

/// Why the cache cannot be used, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// Neither `HEAPDROME_CACHE` nor a home folder is known.
    #[error("no folder for the cache is known; set HEAPDROME_CACHE to one that you may write to")]
    NoFolder,
    /// The loader could not preload a library from there.
    #[error(
        "the cache {path} has a space, a colon or a dollar sign in its path, which the loader \
         cannot preload from; set HEAPDROME_CACHE to a path without"
    )]
    NotPreloadable {
        /// The folder.
        path: PathBuf,
    },
    /// The folder holds something else.
    #[error(
        "{path} is not a cache of heapdrome: it holds other files; set HEAPDROME_CACHE to a new or \
         an empty folder"
    )]
    NotOurs {
        /// The folder.
        path: PathBuf,
    },
    /// The folder is being used by another heapdrome.
    #[error("the cache {path} is in use by another heapdrome; wait until that one has ended")]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// The person asked heapdrome to stop.
    #[error("interrupted while waiting for another heapdrome that works on {what}")]
    Interrupted {
        /// What the other works on.
        what: String,
    },
    /// A file or folder could not be made, read or removed.
    #[error(
        "cannot {doing} {path}: {source}; set HEAPDROME_CACHE to a folder that you may write to"
    )]
    File {
        /// What was tried.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
}

/// Turns an error of the system into one that says what was tried.
pub(super) fn failed(
    doing: &'static str,
    path: &Path,
) -> impl FnOnce(std::io::Error) -> CacheError {
    let path = path.to_owned();
    move |source| CacheError::File {
        doing,
        path,
        source,
    }
}
