//! Hashes of the files that a proof depends on.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Mutex;

use sha2::{Digest, Sha256};

use crate::WitnessError;

/// State of a file: device, inode, size, modification time and status-change time. The
/// status-change time reveals a change even if a program restores the modification time, because no
/// program can set the status-change time.
type State = (u64, u64, u64, (i64, i64), (i64, i64));

/// Cache of file hashes. An unchanged file is read only once: a program may be a hundred megabytes
/// long, and every entrant's proof needs its hash several times.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    known: Mutex<HashMap<State, Vec<u8>>>,
}

impl Contents {
    /// Returns the hash of the file at `path`, which the command needs for `purpose`.
    pub(crate) fn of(&self, path: &Path, purpose: &'static str) -> Result<Vec<u8>, WitnessError> {
        let failed = |source| WitnessError::CannotOpen {
            path: path.to_owned(),
            purpose,
            source,
        };
        let mut file = File::open(path).map_err(failed)?;
        let status = file.metadata().map_err(failed)?;
        let state = (
            status.dev(),
            status.ino(),
            status.size(),
            (status.mtime(), status.mtime_nsec()),
            (status.ctime(), status.ctime_nsec()),
        );
        // If a panic poisoned the lock, the file is read again.
        if let Ok(known) = self.known.lock()
            && let Some(hash) = known.get(&state)
        {
            return Ok(hash.clone());
        }
        let mut hash = Sha256::new();
        std::io::copy(&mut file, &mut hash).map_err(failed)?;
        let hash = hash.finalize().to_vec();
        if let Ok(mut known) = self.known.lock() {
            known.insert(state, hash.clone());
        }
        Ok(hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_again_only_when_it_changed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        let write = |text: &str| std::fs::write(&path, text).expect("the folder is ours");
        let contents = Contents::default();
        let hash = || contents.of(&path, "test").expect("it can be read");
        let read = || contents.known.lock().expect("no thread panicked").len();
        write("one");
        let one = hash();
        assert_eq!((hash() == one, read()), (true, 1));
        write("other");
        assert_ne!(hash(), one);
        assert_eq!(read(), 2);
        // A new file with the old name.
        std::fs::remove_file(&path).expect("the folder is ours");
        write("something else");
        assert_ne!(hash(), one);
        assert_eq!(read(), 3);
    }
}
