//! Folders of heapdrome, by the XDG base directory specification.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use heapdrome_packages::Cache;
use heapdrome_schema::Redaction;

use crate::failure::Failure;

/// Folders in which heapdrome keeps its files.
pub struct Folders {
    /// Cache of sources, allocators, checks and generated inputs.
    pub cache: Cache,
    /// Configuration folder, which contains the user's own allocators.
    pub config: PathBuf,
    /// Folder of the races' journals. Each race has a folder of its own there.
    pub races: PathBuf,
}

impl Folders {
    /// Returns the user's folders. Creates none of them.
    ///
    /// # Errors
    /// When there is neither a home folder nor variables that name the folders, or the cache is
    /// unusable.
    pub fn find() -> Result<Self, Failure> {
        let homeless = || {
            Failure::machine(
                "there is no home folder; set HOME, or XDG_CONFIG_HOME and XDG_STATE_HOME",
            )
        };
        Ok(Self {
            cache: Cache::open().map_err(Failure::machine)?,
            config: dirs::config_dir().ok_or_else(homeless)?.join("heapdrome"),
            races: dirs::state_dir()
                .ok_or_else(homeless)?
                .join("heapdrome")
                .join("races"),
        })
    }

    /// Returns folders below `root`, separate from the user's own.
    ///
    /// # Errors
    /// When the loader cannot preload libraries from the cache's path, or `root` is relative and
    /// the current folder is unknown.
    pub fn below(root: &Path) -> Result<Self, Failure> {
        Ok(Self {
            cache: Cache::at(&root.join("cache")).map_err(Failure::machine)?,
            config: root.join("config"),
            races: root.join("races"),
        })
    }

    /// Makes fetches and builds end soon after `interrupt` is raised.
    #[must_use]
    pub fn interrupted_by(mut self, interrupt: &Arc<AtomicBool>) -> Self {
        self.cache = self.cache.interrupted_by(Arc::clone(interrupt));
        self
    }

    /// Returns the replacements for folder names in shared results.
    pub fn redaction(&self) -> Redaction {
        Redaction::new(dirs::home_dir().as_deref(), self.cache.root())
    }
}
