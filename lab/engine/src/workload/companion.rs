//! Executables that are installed in heapdrome's folder and run its workloads and experiments.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use crate::failure::Failure;

/// A companion that runs built-in workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Companion {
    /// Runs synthetic workloads.
    Runner,
    /// Runs the catalog workload, whose data are generated once.
    Catalog,
}

impl Companion {
    /// Returns the companion's path.
    ///
    /// # Errors
    /// When the companion is not in heapdrome's folder.
    pub fn find(self) -> Result<PathBuf, Failure> {
        find(match self {
            Self::Runner => "heapdrome-runner",
            Self::Catalog => "heapdrome-catalog",
        })
    }
}

/// Returns the path of the companion of this name, which is in the folder of heapdrome itself.
///
/// # Errors
/// When the folder has no such companion.
pub fn find(name: &str) -> Result<PathBuf, Failure> {
    let own = std::env::current_exe()
        .and_then(|path| path.canonicalize())
        .map_err(|error| {
            Failure::Machine(format!(
                "cannot determine the folder of heapdrome, which must contain {name}: {error}"
            ))
        })?;
    let path = own.with_file_name(name);
    let runnable = path
        .metadata()
        .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0);
    match runnable {
        true => Ok(path),
        false => Err(Failure::Machine(format!(
            "{name} is not beside heapdrome in {}; `cargo install --path lab/cli` installs it there, and \
             `cargo build --release` builds it there",
            own.parent().unwrap_or(&own).display()
        ))),
    }
}
