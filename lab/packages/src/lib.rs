//! Pinned packages from registries, fetched once into a cache that heapdrome alone writes to.
//!
//! The cache is the folder that `HEAPDROME_CACHE` names, or `heapdrome` in the user's cache folder.
//! Its content is made in a staging folder under a lock and then renamed, so that a killed
//! heapdrome leaves no partial result where another would find it.
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
        /// The package.
        package: String,
    },
    /// The program that fetches packages is not installed.
    #[error("cannot fetch {package}: {program} was not found; {advice}")]
    ProgramMissing {
        /// The package.
        package: String,
        /// The program.
        program: String,
        /// Package to install.
        advice: String,
    },
    /// The program that fetches packages failed.
    #[error(
        "cannot fetch {package}: {program} reported \"{reason}\"; check the network and try again \
         (full output in {log})"
    )]
    Failed {
        /// The package.
        package: String,
        /// The program.
        program: String,
        /// Its most informative output line.
        reason: String,
        /// Log of its whole output.
        log: PathBuf,
    },
    /// The registry offers a version other than the pinned one.
    #[error("cannot fetch {package} {wanted}: the registry offers {found}; {advice}")]
    OtherVersion {
        /// The package.
        package: String,
        /// The pinned version.
        wanted: String,
        /// Version that the registry offers.
        found: String,
        /// Remedy.
        advice: String,
    },
    /// The checksum of the download differs from the pinned one.
    #[error(
        "{package} is not the pinned one: SHA-256 {found} instead of {wanted}; it is not \
         used; do not trust the registry that it came from"
    )]
    WrongChecksum {
        /// The package.
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
