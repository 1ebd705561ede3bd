//! Files that hold what commands print, in the race's folder.

use std::path::{Path, PathBuf};

use crate::MeasureError;

/// The files; each run empties them, and they are removed when this is dropped.
pub(crate) struct Scratch {
    folder: PathBuf,
    /// Whether the folder is this process's own to write and to remove.
    made: bool,
    pub(crate) stdout: PathBuf,
    pub(crate) stderr: PathBuf,
    pub(crate) server_stderr: PathBuf,
    pub(crate) step_stderr: PathBuf,
}

impl Scratch {
    /// Names the files, and makes nothing yet.
    pub(crate) fn below(folder: &Path) -> Self {
        let folder = folder.join("output");
        Self {
            stdout: folder.join("stdout"),
            stderr: folder.join("stderr"),
            server_stderr: folder.join("server-stderr"),
            step_stderr: folder.join("step-stderr"),
            made: false,
            folder,
        }
    }

    /// Makes the folder; until then nothing can be run. The journal must be locked by now, so
    /// that no other heapdrome uses the same files.
    pub(crate) fn make(&mut self) -> Result<(), MeasureError> {
        self.made = true;
        std::fs::create_dir_all(&self.folder).map_err(|source| MeasureError::Scratch {
            path: self.folder.clone(),
            source,
        })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.made {
            return;
        }
        for file in [
            &self.stdout,
            &self.stderr,
            &self.server_stderr,
            &self.step_stderr,
        ] {
            let _ = std::fs::remove_file(file);
        }
        // Stays if there is anything else in it.
        let _ = std::fs::remove_dir(&self.folder);
    }
}
