//! The manifest of a folder of traces, which describes the recording of each trace.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::at;
use crate::{LibraryError, Size};

/// Name of the manifest in a folder of traces.
pub const MANIFEST: &str = "manifest.json";

/// Description of a recorded trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Name of the trace; its file is `NAME.trace`.
    pub name: String,
    /// Length of the recorded run.
    pub size: Size,
    /// The program and its version.
    pub program: String,
    /// Command that was recorded, as a line for a shell.
    pub command: String,
    /// Time at which the recording began, in UTC, as RFC 3339.
    pub date: String,
    /// Version of heapdrome that recorded the trace.
    pub heapdrome: String,
    /// Number of operations in the trace, summed over all processes.
    pub operations: u64,
    /// Time in the recording at which the trace was cut off, in nanoseconds; `None` if the trace is
    /// complete.
    pub cut_at: Option<u64>,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// SHA-256 of the file in hexadecimal.
    pub sha256: String,
}

/// List of all traces in a folder.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Manifest {
    /// Entries of the traces, sorted by name.
    pub traces: Vec<Entry>,
}

impl Manifest {
    /// Reads the manifest of a folder. Returns an empty manifest if the folder has none.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a manifest.
    pub fn read(folder: &Path) -> Result<Self, LibraryError> {
        let path = folder.join(MANIFEST);
        match std::fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text).map_err(|error| LibraryError::Manifest {
                path,
                reason: error.to_string(),
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(at(&path)(error)),
        }
    }

    /// Adds the entry of a trace. Replaces an existing entry with this name.
    pub fn add(&mut self, entry: Entry) {
        self.traces.retain(|one| one.name != entry.name);
        self.traces.push(entry);
        self.traces.sort_by(|one, other| one.name.cmp(&other.name));
    }

    /// Writes the manifest into a folder, completely or not at all.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), LibraryError> {
        let path = folder.join(MANIFEST);
        let mut text =
            serde_json::to_string_pretty(self).map_err(|error| LibraryError::Manifest {
                path: path.clone(),
                reason: error.to_string(),
            })?;
        text.push('\n');
        let fresh = tempfile::NamedTempFile::new_in(folder).map_err(at(folder))?;
        std::fs::write(fresh.path(), text).map_err(at(&path))?;
        readable(fresh.path())?;
        fresh
            .persist(&path)
            .map_err(|error| at(&path)(error.error))?;
        Ok(())
    }
}

/// Makes a file readable for all users. Temporary files are readable only for their owner.
pub(crate) fn readable(path: &Path) -> Result<(), LibraryError> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).map_err(at(path))
}
