//! Pinned packages from registries, fetched once into a cache to which only heapdrome writes.
//!
//! The cache is the folder in `HEAPDROME_CACHE`, or `heapdrome` in the user's cache folder. Each
//! item is made in a staging folder under a lock and then renamed, so no process ever sees the
//! partial result of a killed process.
//!
//! ```no_run
//! use heapdrome_packages::{Cache, CratePin, fetch_crate};
//!
//! let cache = Cache::open()?;
//! let pin = CratePin {
//!     name: "rpmalloc-sys".to_owned(),
//!     version: "0.2.3+b097fd0".to_owned(),
//!     sha256: "8d4b7d5e225a53887ee57fcec492eaf114b8e290f7072d035adc6ddd6810b67b".to_owned(),
//! };
//! let folder = fetch_crate(&cache, &pin)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cache;
mod child;
mod crates;
mod debian;
mod fetch;

pub use cache::{Cache, CacheError, Hold, Lock, Shelf, is_preloadable};
pub use child::{ChildError, Job, last_lines, quoted};
pub use crates::{CratePin, fetch_crate};
pub use debian::{DebianPin, fetch_debian_source};

use std::path::PathBuf;

use heapdrome_system::FileError;

/// Reason why a package could not be fetched, with a remedy.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The cache could not be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// The user interrupted heapdrome.
    #[error("interrupted while fetching {package}")]
    Interrupted {
        /// Package, as messages name it.
        package: String,
    },
    /// The program that fetches or unpacks packages is not installed.
    #[error("cannot fetch {package}: {program} was not found; {advice}")]
    ProgramMissing {
        /// Package, as messages name it.
        package: String,
        /// Name of the program.
        program: String,
        /// Remedy, such as a program to install.
        advice: String,
    },
    /// The program that fetches or unpacks packages could not be started or waited for.
    #[error("cannot fetch {package}: cannot start {program}: {source}")]
    CannotStart {
        /// Package, as messages name it.
        package: String,
        /// Name of the program.
        program: String,
        /// Error that the system returned.
        source: std::io::Error,
    },
    /// The program that fetches or unpacks packages failed.
    #[error(
        "cannot fetch {package}: {program} reported \"{reason}\"; check the network and try again \
         (full output in {log})"
    )]
    Failed {
        /// Package, as messages name it.
        package: String,
        /// Name of the program.
        program: String,
        /// Most informative line of the program's output.
        reason: String,
        /// Path of the log with the whole output.
        log: PathBuf,
    },
    /// The registry offers a version other than the pinned one.
    #[error("cannot fetch {package} {wanted}: the registry offers {found}; {advice}")]
    OtherVersion {
        /// Package, as messages name it.
        package: String,
        /// The pinned version.
        wanted: String,
        /// Version or archive that the registry offers.
        found: String,
        /// Suggested remedy.
        advice: String,
    },
    /// The checksum of the download differs from the pinned one.
    #[error(
        "{package} is not the pinned one: SHA-256 {found} instead of {wanted}; it is not \
         used; do not trust the registry that it came from"
    )]
    WrongChecksum {
        /// Package or archive, as messages name it.
        package: String,
        /// The pinned checksum.
        wanted: String,
        /// Checksum of the download.
        found: String,
    },
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
}
