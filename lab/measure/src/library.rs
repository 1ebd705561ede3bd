//! Detection of changes to an entrant's library since its proof.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use heapdrome_schema::Entrant;
use heapdrome_system::sha256_of_file;

use crate::MeasureError;

/// Metadata of a file, used as a cheap fingerprint of its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// Libraries of one entrant, which must not change.
#[derive(Clone, Debug)]
pub(crate) struct Libraries {
    place: usize,
    preload: Vec<PathBuf>,
    library: Option<PathBuf>,
    sha256: Option<String>,
    stamp: Option<Stamp>,
}

impl Libraries {
    /// Returns the libraries of the entrant at `place` in the plan.
    pub(crate) fn of(place: usize, entrant: &Entrant) -> Self {
        Self {
            place,
            preload: entrant.preload.clone(),
            library: entrant.library.clone(),
            sha256: entrant.sha256.clone(),
            stamp: None,
        }
    }

    /// Checks that every library exists, and that the library that must serve `malloc` has not
    /// changed. This check is necessary because the loader only warns about a missing library, and
    /// runs the program without it.
    pub(crate) fn check(&mut self) -> Result<(), MeasureError> {
        if let Some(missing) = self.preload.iter().find(|path| !path.exists()) {
            return Err(self.changed(missing, "it is gone"));
        }
        let Some(path) = &self.library else {
            return Ok(());
        };
        let now = stamp_of(path).map_err(|error| self.changed(path, &error.to_string()))?;
        if self.stamp == Some(now) {
            return Ok(());
        }
        let hash = sha256_of_file(path).map_err(|error| self.changed(path, &error.to_string()))?;
        if self
            .sha256
            .as_ref()
            .is_some_and(|expected| *expected != hash)
        {
            return Err(self.changed(path, "its content changed"));
        }
        self.sha256 = Some(hash);
        self.stamp = Some(now);
        Ok(())
    }

    /// Accepts the current content of the library.
    pub(crate) fn accept(&mut self) -> Result<(), MeasureError> {
        self.sha256 = None;
        self.stamp = None;
        self.check()
    }

    fn changed(&self, library: &Path, how: &str) -> MeasureError {
        MeasureError::LibraryChanged {
            entrant: self.place,
            library: library.to_owned(),
            how: how.to_owned(),
        }
    }
}

fn stamp_of(path: &Path) -> io::Result<Stamp> {
    let data = fs::metadata(path)?;
    Ok(Stamp {
        device: data.dev(),
        inode: data.ino(),
        size: data.size(),
        modified: (data.mtime(), data.mtime_nsec()),
        changed: (data.ctime(), data.ctime_nsec()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan_for_tests::plan_of;

    #[test]
    fn a_touched_library_is_the_same_and_a_rewritten_one_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.so");
        fs::write(&path, "abc").expect("written");
        let mut entrant = plan_of(&["true"], 1).entrants.remove(0);
        entrant.library = Some(path.clone());
        entrant.preload = vec![path.clone()];
        entrant.sha256 =
            Some("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad".to_owned());
        let mut libraries = Libraries::of(3, &entrant);
        libraries.check().expect("as planned");
        fs::write(&path, "abc").expect("written");
        libraries.check().expect("the same contents");
        fs::write(&path, "abd").expect("written");
        let error = libraries.check().expect_err("other contents");
        assert!(matches!(
            error,
            MeasureError::LibraryChanged { entrant: 3, .. }
        ));
        libraries.accept().expect("accepted");
        libraries.check().expect("accepted");
        fs::remove_file(&path).expect("removed");
        assert!(
            libraries
                .check()
                .expect_err("gone")
                .to_string()
                .contains("it is gone")
        );
    }
}
