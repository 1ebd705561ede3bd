//! Registry of all allocators that heapdrome knows: lookup, building, and checks.
//!
//! Each allocator is an entry: a data file in `allocators/`, or a few lines in the user's own
//! `allocators.toml`. This crate reads the entries, finds their libraries on this machine, builds
//! missing libraries in the cache where a recipe exists, and creates the entrants of a race.
//!
//! ```no_run
//! use heapdrome_registry::{Registry, RegistryError};
//! use heapdrome_packages::Cache;
//!
//! let cache = Cache::open()?;
//! let registry = Registry::load(&cache, std::path::Path::new("config"))?;
//! let entrant = match registry.entrant("mimalloc3") {
//!     Err(RegistryError::NotInstalled { name }) => {
//!         registry.install(&name, &mut |event| eprintln!("{event:?}"))?;
//!         registry.entrant(&name)?
//!     }
//!     other => other?,
//! };
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod build;
mod carried;
mod check;
mod compiled;
mod config;
mod embedded;
mod entry;
mod error;
mod library;
mod misuse;
mod registry;
mod requires;
mod system;

pub use build::{BuildEvent, Installed};
pub use check::{CheckOutcome, CheckResult, Checks};
pub use entry::{Adoption, Entry, OPTIMISATION, Source};
pub use error::{LibraryFault, RegistryError};
pub use heapdrome_conformance::Level;
pub use misuse::Misuses;
pub use registry::{Listing, Registry, State};
pub use requires::Requires;
pub use system::{package_of, system_libc};
