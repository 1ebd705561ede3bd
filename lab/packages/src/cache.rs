//! The folder that heapdrome keeps what it fetched and built in.

mod error;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use heapdrome_system::lock;
use tempfile::TempDir;

use error::failed;

pub use error::CacheError;

/// The marker by which heapdrome knows its own cache; backup programs know its first line, too.
const MARKER: &str = "CACHEDIR.TAG";
const MARKER_TEXT: &str = "Signature: 8a477f597d28d172789f06886806bc55\n\
    # This folder is heapdrome's cache. `heapdrome cache clean` empties it.\n";
/// The word in the marker that other programs' markers lack.
const MARKER_WORD: &str = "heapdrome's cache";
/// What a marker's name begins with while it is written.
const NEW_MARKER: &str = ".new-marker-";
/// The lock that keeps `clean` and everything else apart. It stays for as long as the cache: who
/// opened it before it was removed would lock a file that nobody else finds.
const MAIN_LOCK: &str = "cache.lock";

/// What is kept in the cache, one folder each. `clean` empties these and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shelf {
    /// Unpacked source packages.
    Sources,
    /// Allocators that heapdrome built.
    Allocators,
    /// The programs of `heapdrome allocators check`.
    Checks,
    /// Sources and builds of workloads.
    Workloads,
    /// Output of programs that fetched or built something.
    Logs,
    /// What is being made; a folder for each lock.
    Staging,
    /// Lock files.
    Locks,
}

impl Shelf {
    const ALL: [Self; 7] = [
        Self::Sources,
        Self::Allocators,
        Self::Checks,
        Self::Workloads,
        Self::Logs,
        Self::Staging,
        Self::Locks,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Sources => "sources",
            Self::Allocators => "allocators",
            Self::Checks => "checks",
            Self::Workloads => "workloads",
            Self::Logs => "logs",
            Self::Staging => "staging",
            Self::Locks => "locks",
        }
    }
}

/// Whether the dynamic loader can preload a library of this path: it splits `LD_PRELOAD` at spaces
/// and colons and expands `$ORIGIN` and its like.
#[must_use]
pub fn is_preloadable(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    !bytes
        .iter()
        .any(|byte| matches!(byte, b' ' | b':' | b'$' | b'\n'))
}

/// The cache. Opening it writes nothing; the folder is made when something is first put into it.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
    interrupt: Arc<AtomicBool>,
    /// The locks that [`Cache::keep`] shares.
    kept: Arc<Mutex<BTreeMap<String, Weak<Lock>>>>,
}

/// While it lives, `clean` is refused; see [`Cache::hold`].
#[derive(Debug)]
pub struct Hold {
    _file: File,
}

/// While it lives, no other heapdrome makes the same thing; see [`Cache::lock`].
#[derive(Debug)]
pub struct Lock {
    _hold: Hold,
    _file: File,
    staging: PathBuf,
}

impl Cache {
    /// The cache of this user: `HEAPDROME_CACHE`, or `heapdrome` in the user's cache folder.
    ///
    /// # Errors
    /// When no folder is known, or when the loader could not preload a library from it.
    pub fn open() -> Result<Self, CacheError> {
        let named = std::env::var_os("HEAPDROME_CACHE").filter(|name| !name.is_empty());
        let usual = || dirs::cache_dir().map(|folder| folder.join("heapdrome"));
        let root = named
            .map(PathBuf::from)
            .or_else(usual)
            .ok_or(CacheError::NoFolder)?;
        Self::at(&root)
    }

    /// A cache in a folder of choice; a relative path is taken from the current folder.
    ///
    /// # Errors
    /// When the loader could not preload a library from it.
    pub fn at(root: &Path) -> Result<Self, CacheError> {
        let root = std::path::absolute(root).map_err(failed("use the folder", root))?;
        if !is_preloadable(&root) {
            return Err(CacheError::NotPreloadable { path: root });
        }
        Ok(Self {
            root,
            interrupt: Arc::default(),
            kept: Arc::default(),
        })
    }

    /// Makes every wait and every child process of this cache's fetches and builds end soon after
    /// `interrupt` becomes true.
    #[must_use]
    pub fn interrupted_by(mut self, interrupt: Arc<AtomicBool>) -> Self {
        self.interrupt = interrupt;
        self
    }

    /// The flag that ends waits and child processes.
    pub fn interrupt(&self) -> &AtomicBool {
        &self.interrupt
    }

    /// The folder, which need not exist yet.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where a shelf is, whether it exists or not.
    pub fn path(&self, shelf: Shelf) -> PathBuf {
        self.root.join(shelf.name())
    }

    /// A shelf, made if needed.
    ///
    /// # Errors
    /// When the folder cannot be made or holds something else than heapdrome's cache.
    pub fn shelf(&self, shelf: Shelf) -> Result<PathBuf, CacheError> {
        self.claim()?;
        let path = self.path(shelf);
        std::fs::create_dir_all(&path).map_err(failed("make the folder", &path))?;
        Ok(path)
    }

    /// Makes the folder and its marker, unless the folder is somebody else's.
    fn claim(&self) -> Result<(), CacheError> {
        if self.is_ours()? {
            return Ok(());
        }
        std::fs::create_dir_all(&self.root).map_err(failed("make the cache", &self.root))?;
        // Another heapdrome may just have written its marker, or be about to.
        if self.holds_other_files()? && !self.is_ours()? {
            return Err(CacheError::NotOurs {
                path: self.root.clone(),
            });
        }
        self.mark()
    }

    fn holds_other_files(&self) -> Result<bool, CacheError> {
        let entries =
            std::fs::read_dir(&self.root).map_err(failed("read the cache", &self.root))?;
        let mut names = entries.flatten().map(|entry| entry.file_name());
        Ok(names.any(|name| !name.as_encoded_bytes().starts_with(NEW_MARKER.as_bytes())))
    }

    /// Writes the marker, which nobody ever sees without its text.
    fn mark(&self) -> Result<(), CacheError> {
        let marker = self.root.join(MARKER);
        let mut new = tempfile::Builder::new()
            .prefix(NEW_MARKER)
            // Others may read a marker, such as a backup program of the machine.
            .permissions(Permissions::from_mode(0o644))
            .tempfile_in(&self.root)
            .map_err(failed("write in", &self.root))?;
        new.write_all(MARKER_TEXT.as_bytes())
            .map_err(failed("write", &marker))?;
        let placed = new.persist(&marker);
        placed
            .map(|_| ())
            .map_err(|error| failed("write", &marker)(error.error))
    }

    fn is_ours(&self) -> Result<bool, CacheError> {
        let marker = self.root.join(MARKER);
        match std::fs::read(&marker) {
            Ok(text) => Ok(String::from_utf8_lossy(&text).contains(MARKER_WORD)),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound) => Ok(false),
            Err(error) => Err(failed("read", &marker)(error)),
        }
    }

    fn open_lock_file(&self, name: &str) -> Result<File, CacheError> {
        let path = self.shelf(Shelf::Locks)?.join(name);
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).read(true).write(true);
        options.open(&path).map_err(failed("open the lock", &path))
    }

    /// Keeps `clean` away while the result lives, such as during a race.
    ///
    /// # Errors
    /// When the cache cannot be written to, or is being cleaned.
    pub fn hold(&self) -> Result<Hold, CacheError> {
        let file = self.open_lock_file(MAIN_LOCK)?;
        match lock::try_shared(&file) {
            Ok(true) => Ok(Hold { _file: file }),
            Ok(false) => Err(CacheError::InUse {
                path: self.root.clone(),
            }),
            Err(error) => Err(failed("lock", &self.root)(error)),
        }
    }

    /// Keeps every other heapdrome from making `what` while the result lives; waits for one that
    /// does. What a killed one left in the staging folder is removed.
    ///
    /// # Errors
    /// When the cache cannot be written to, or the wait was interrupted.
    pub fn lock(&self, what: &str) -> Result<Lock, CacheError> {
        let hold = self.hold()?;
        let file = self.open_lock_file(&format!("{what}.lock"))?;
        while !lock::try_exclusive(&file).map_err(failed("lock", &self.root))? {
            if self.interrupt.load(Ordering::Relaxed) {
                return Err(CacheError::Interrupted {
                    what: what.to_owned(),
                });
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let staging = self.shelf(Shelf::Staging)?.join(what);
        remove_folder(&staging)?;
        std::fs::create_dir_all(&staging).map_err(failed("make the folder", &staging))?;
        Ok(Lock {
            _hold: hold,
            _file: file,
            staging,
        })
    }

    /// Removes `folder`, which is made under the lock on `what`, and says whether it was there. It
    /// is renamed first, so that no other process finds half of it.
    ///
    /// # Errors
    /// When the cache cannot be written to, or the wait for the lock was interrupted.
    pub fn remove(&self, what: &str, folder: &Path) -> Result<bool, CacheError> {
        if !folder.exists() {
            return Ok(false);
        }
        let lock = self.lock(what)?;
        // The staging folder goes when dropped.
        let staging = lock.staging()?;
        lock.place(folder, &staging.path().join("removed"))?;
        Ok(true)
    }

    /// As [`Cache::lock`], but shared with whoever keeps the same in this process already: races
    /// that take turns in one folder. A copy of this cache shares, too.
    ///
    /// # Errors
    /// As [`Cache::lock`].
    pub fn keep(&self, what: &str) -> Result<Arc<Lock>, CacheError> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = kept.get(what).and_then(Weak::upgrade) {
            return Ok(lock);
        }
        let lock = Arc::new(self.lock(what)?);
        kept.insert(what.to_owned(), Arc::downgrade(&lock));
        Ok(lock)
    }

    /// Empties the cache and says how many bytes that freed; one that is not there frees none.
    /// The marker and the lock file stay.
    ///
    /// # Errors
    /// When the folder is not heapdrome's, is in use, or cannot be emptied.
    pub fn clean(&self) -> Result<u64, CacheError> {
        if !self.root.exists() {
            return Ok(0);
        }
        if !self.is_ours()? {
            return Err(CacheError::NotOurs {
                path: self.root.clone(),
            });
        }
        let file = self.open_lock_file(MAIN_LOCK)?;
        if !lock::try_exclusive(&file).map_err(failed("lock", &self.root))? {
            return Err(CacheError::InUse {
                path: self.root.clone(),
            });
        }
        let mut freed = 0;
        for shelf in Shelf::ALL {
            let path = self.path(shelf);
            if shelf == Shelf::Locks {
                remove_locks(&path)?;
            } else {
                freed += size_of_folder(&path);
                remove_folder(&path)?;
            }
        }
        Ok(freed)
    }
}

impl Lock {
    /// A new folder to make something in; it goes when dropped, unless it was renamed into place.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn staging(&self) -> Result<TempDir, CacheError> {
        let made = tempfile::Builder::new()
            .prefix("new-")
            .tempdir_in(&self.staging);
        made.map_err(failed("make a folder in", &self.staging))
    }

    /// Renames `from`, made in this lock's staging folder, to `to`, replacing what is there.
    ///
    /// # Errors
    /// When a folder cannot be moved.
    pub fn place(&self, from: &Path, to: &Path) -> Result<(), CacheError> {
        if to.exists() {
            let aside = self.staging()?;
            let old = aside.path().join("old");
            std::fs::rename(to, &old).map_err(failed("move", to))?;
        }
        std::fs::rename(from, to).map_err(failed("move", from))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Only an empty folder goes; what a TempDir still owns stays with it.
        let _ = std::fs::remove_dir(&self.staging);
    }
}

fn remove_folder(path: &Path) -> Result<(), CacheError> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed("remove", path)(error)),
        _ => Ok(()),
    }
}

/// Removes all lock files but the main one, which the caller has locked.
fn remove_locks(folder: &Path) -> Result<(), CacheError> {
    let entries = std::fs::read_dir(folder).map_err(failed("read", folder))?;
    for entry in entries.flatten().filter(|it| it.file_name() != MAIN_LOCK) {
        std::fs::remove_file(entry.path()).map_err(failed("remove", &entry.path()))?;
    }
    Ok(())
}

/// Bytes of the files below `path`; what cannot be read counts nothing. Links are not followed.
fn size_of_folder(path: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(path) else {
        return 0;
    };
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(data) if data.is_dir() => size_of_folder(&entry.path()),
        Ok(data) => data.len(),
        Err(_) => 0,
    };
    entries.flatten().map(size).sum()
}

#[cfg(test)]
mod tests;
