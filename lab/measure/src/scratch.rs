//! Files in the race's folder that receive the output of commands.

use std::path::{Path, PathBuf};

use crate::MeasureError;

/// Output files of commands. Each run empties those that it writes, and dropping this value removes
/// all of them.
pub(crate) struct Scratch {
    folder: PathBuf,
    /// Whether [`Scratch::make`] was called. Only then are the files and the folder removed on
    /// drop.
    made: bool,
    pub(crate) stdout: PathBuf,
    pub(crate) stderr: PathBuf,
    pub(crate) server_stderr: PathBuf,
    pub(crate) step_stderr: PathBuf,
}

impl Scratch {
    /// Returns the paths of the files, without creating anything.
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

    /// Creates the folder, which every run needs. The journal must already be locked, so that no
    /// other heapdrome uses these files.
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
        // A folder that contains other files is not removed.
        let _ = std::fs::remove_dir(&self.folder);
    }
}
