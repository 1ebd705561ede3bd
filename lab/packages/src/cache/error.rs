//! Errors of the cache.

use std::path::{Path, PathBuf};

/// Reason why the cache cannot be used, with a remedy.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// `HEAPDROME_CACHE` is not set, and the user's cache folder is unknown.
    #[error("no folder for the cache is known; set HEAPDROME_CACHE to one that you may write to")]
    NoFolder,
    /// The loader cannot preload a library from this folder.
    #[error(
        "the cache {path} has a space, a colon or a dollar sign in its path, which the loader \
         cannot preload from; set HEAPDROME_CACHE to a path without"
    )]
    NotPreloadable {
        /// Path of the folder.
        path: PathBuf,
    },
    /// The folder has no marker of heapdrome, so its files may belong to another program.
    #[error(
        "{path} is not a cache of heapdrome: it holds other files; set HEAPDROME_CACHE to a new or \
         an empty folder"
    )]
    NotOurs {
        /// Path of the folder.
        path: PathBuf,
    },
    /// Another heapdrome process is using the folder.
    #[error("the cache {path} is in use by another heapdrome; wait until that one has ended")]
    InUse {
        /// Path of the folder.
        path: PathBuf,
    },
    /// The user interrupted heapdrome while it waited for another process.
    #[error("interrupted while waiting for another heapdrome that works on {what}")]
    Interrupted {
        /// Item that the other process makes.
        what: String,
    },
    /// An operation on a file or folder failed.
    #[error(
        "cannot {doing} {path}: {source}; set HEAPDROME_CACHE to a folder that you may write to"
    )]
    File {
        /// Operation that failed.
        doing: &'static str,
        /// Path of the file or folder.
        path: PathBuf,
        /// Error that the system returned.
        source: std::io::Error,
    },
}

/// Returns a function that adds the failed operation and the path to a system error.
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
