//! Lookup of a trace by its path, or by its name in the library.

use std::fmt::{self, Display};
use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::path::{Path, PathBuf};

use heapdrome_library::{Carried, Entry, carried, find_carried};
use heapdrome_schema::nearest_or_all;
use heapdrome_system::sha256_of_file;

use crate::failure::Failure;

/// Prefix of the name of a built-in trace.
const LIBRARY: &str = "library:";

/// A trace that is replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file, by its absolute path in UTF-8.
    File(PathBuf),
    /// A built-in trace, by its name in the library.
    Carried(String),
}

impl Source {
    /// Returns the trace that a command line names: `library:NAME`, or a path.
    ///
    /// # Errors
    /// When there is no built-in trace of that name, or the path is not UTF-8.
    pub fn named(name: &Path) -> Result<Self, Failure> {
        let Some(text) = name.to_str() else {
            let told = format!("{}: the name is no UTF-8; rename the file", name.display());
            return Err(Failure::Usage(told));
        };
        match text.strip_prefix(LIBRARY) {
            Some(name) => found(name).map(|_| Self::Carried(name.to_owned())),
            None => {
                let path = std::path::absolute(name).map_err(Failure::usage)?;
                Ok(Self::File(path))
            }
        }
    }

    /// Opens the trace for reading.
    ///
    /// # Errors
    /// When the file cannot be read, or a built-in trace cannot be copied to a temporary file.
    pub fn open(&self) -> Result<File, Failure> {
        match self {
            Self::File(path) => File::open(path).map_err(|error| self.failure(error)),
            Self::Carried(name) => opened(found(name)?),
        }
    }

    /// Returns the SHA-256 of the trace in hexadecimal.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn sha256(&self) -> Result<String, Failure> {
        match self {
            Self::File(path) => sha256_of_file(path).map_err(|error| self.failure(error)),
            Self::Carried(name) => Ok(found(name)?.entry.sha256.clone()),
        }
    }

    fn failure(&self, error: impl Display) -> Failure {
        Failure::Usage(format!("{self}: {error}"))
    }
}

/// Opens the trace that a command line names: `library:NAME`, or a path.
///
/// # Errors
/// When there is no built-in trace of that name, the file cannot be read, or a built-in trace
/// cannot be copied to a temporary file.
pub fn open(name: &Path) -> Result<File, Failure> {
    match name.to_str().and_then(|text| text.strip_prefix(LIBRARY)) {
        Some(name) => opened(found(name)?),
        None => File::open(name)
            .map_err(|error| Failure::Usage(format!("cannot read {}: {error}", name.display()))),
    }
}

/// Returns the description of the built-in trace that a command line names; `None` for a file.
#[must_use]
pub fn built_in(name: &Path) -> Option<&'static Entry> {
    let name = name.to_str()?.strip_prefix(LIBRARY)?;
    find_carried(name).map(|carried| &carried.entry)
}

/// Copies a built-in trace into an unnamed temporary file, and returns the file, positioned at its
/// beginning.
fn opened(carried: &Carried) -> Result<File, Failure> {
    let copy = || {
        let mut file = tempfile::tempfile()?;
        file.write_all(carried.bytes)?;
        file.rewind()?;
        Ok(file)
    };
    copy().map_err(|error: std::io::Error| {
        let folder = std::env::temp_dir();
        let told = format!("cannot write the trace to {}: {error}", folder.display());
        Failure::Machine(told)
    })
}

fn found(name: &str) -> Result<&'static Carried, Failure> {
    find_carried(name).ok_or_else(|| {
        let known = carried().iter().map(|one| one.entry.name.as_str());
        let advice = nearest_or_all(name, known);
        Failure::Usage(format!("no such built-in trace: {name} ({advice})"))
    })
}

impl Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Carried(name) => write!(f, "{LIBRARY}{name}"),
        }
    }
}
