//! The cache: the folder in which heapdrome keeps fetched sources, its own builds, and the data of
//! workloads.

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

/// Name of the file that marks a folder as heapdrome's cache. Backup programs recognise its first
/// line.
const MARKER: &str = "CACHEDIR.TAG";
const MARKER_TEXT: &str = "Signature: 8a477f597d28d172789f06886806bc55\n\
    # This folder is heapdrome's cache. `heapdrome cache clean` empties it.\n";
/// Text that distinguishes heapdrome's marker from those of other programs.
const MARKER_WORD: &str = "heapdrome's cache";
/// Prefix of the name of a marker that is being written.
const NEW_MARKER: &str = ".new-marker-";
/// Name of the lock that `clean` takes exclusively and every [`Hold`] shares. The file is never
/// removed: otherwise a process that had already opened it would hold a lock that later processes
/// cannot see.
const MAIN_LOCK: &str = "cache.lock";

/// Kind of content in the cache. Each kind has its own folder, and `clean` removes nothing outside
/// these folders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shelf {
    /// Unpacked source packages.
    Sources,
    /// Allocators that heapdrome built.
    Allocators,
    /// The programs of `heapdrome allocators check`.
    Checks,
    /// Builds, inputs and generated data of workloads, and compiled traces.
    Workloads,
    /// Output of programs that fetch, build or generate something.
    Logs,
    /// Work in progress, one folder for each lock.
    Staging,
    /// Lock files: one for each item, and that of the main lock.
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

/// Returns whether the dynamic loader can preload a library from this path. The loader splits
/// `LD_PRELOAD` at spaces and colons, and expands `$ORIGIN` and similar variables. A path with a
/// line break is rejected, too.
#[must_use]
pub fn is_preloadable(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    !bytes
        .iter()
        .any(|byte| matches!(byte, b' ' | b':' | b'$' | b'\n'))
}

/// The cache. Opening it writes nothing; the folder is created with the first shelf or lock.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
    interrupt: Arc<AtomicBool>,
    /// Locks that [`Cache::keep`] shares, by item.
    kept: Arc<Mutex<BTreeMap<String, Weak<Lock>>>>,
}

/// A shared lock that makes `clean` fail while it exists; see [`Cache::hold`].
#[derive(Debug)]
pub struct Hold {
    _file: File,
}

/// An exclusive lock. While it exists, no other process makes the same item, and `clean` fails; see
/// [`Cache::lock`].
#[derive(Debug)]
pub struct Lock {
    _hold: Hold,
    _file: File,
    staging: PathBuf,
}

impl Cache {
    /// Opens the cache of this user: `HEAPDROME_CACHE`, or `heapdrome` in the user's cache folder.
    ///
    /// # Errors
    /// When no folder is known, when its path is relative and the current folder is unknown, or
    /// when the loader cannot preload libraries from the path.
    pub fn open() -> Result<Self, CacheError> {
        let named = std::env::var_os("HEAPDROME_CACHE").filter(|name| !name.is_empty());
        let usual = || dirs::cache_dir().map(|folder| folder.join("heapdrome"));
        let root = named
            .map(PathBuf::from)
            .or_else(usual)
            .ok_or(CacheError::NoFolder)?;
        Self::at(&root)
    }

    /// Opens a cache in the given folder. A relative path is resolved against the current folder.
    ///
    /// # Errors
    /// When the path is empty, when it is relative and the current folder is unknown, or when the
    /// loader cannot preload libraries from it.
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

    /// Sets the flag that interrupts work. Soon after `interrupt` becomes true, every wait for a
    /// lock ends, and so does every child process that fetches or builds.
    #[must_use]
    pub fn interrupted_by(mut self, interrupt: Arc<AtomicBool>) -> Self {
        self.interrupt = interrupt;
        self
    }

    /// Returns the flag that [`Cache::interrupted_by`] sets.
    pub fn interrupt(&self) -> &AtomicBool {
        &self.interrupt
    }

    /// Returns the path of the cache's folder, which need not exist yet.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the path of a shelf, which need not exist yet.
    pub fn path(&self, shelf: Shelf) -> PathBuf {
        self.root.join(shelf.name())
    }

    /// Returns the path of a shelf, and creates the shelf if needed.
    ///
    /// # Errors
    /// When a folder cannot be created, or the cache's folder has other files but no marker of
    /// heapdrome.
    pub fn shelf(&self, shelf: Shelf) -> Result<PathBuf, CacheError> {
        self.claim()?;
        let path = self.path(shelf);
        std::fs::create_dir_all(&path).map_err(failed("make the folder", &path))?;
        Ok(path)
    }

    /// Creates the folder and its marker if needed. Fails if the folder has other files but no
    /// marker.
    fn claim(&self) -> Result<(), CacheError> {
        if self.is_ours()? {
            return Ok(());
        }
        std::fs::create_dir_all(&self.root).map_err(failed("make the cache", &self.root))?;
        // Another heapdrome process may create this cache at the same time, so the folder may now
        // have a marker.
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

    /// Writes the marker atomically, so that no other process sees an incomplete one.
    fn mark(&self) -> Result<(), CacheError> {
        let marker = self.root.join(MARKER);
        let mut new = tempfile::Builder::new()
            .prefix(NEW_MARKER)
            // The marker is world-readable, for example for backup programs.
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

    /// Makes `clean` fail while the returned value exists, for example during a race.
    ///
    /// # Errors
    /// When [`Cache::shelf`] fails, or the cache is being cleaned.
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

    /// Takes an exclusive lock on the item `what`, after waiting for any process that holds it.
    /// While the returned value exists, no other process makes the item. Removes the files that a
    /// killed process left in the item's staging folder.
    ///
    /// # Errors
    /// When [`Cache::hold`] fails, a file or folder cannot be written, or the wait was interrupted.
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

    /// Removes `folder`, which is made under the lock on `what`, and returns whether the folder
    /// existed. The folder is first renamed, so that no other process sees a partly removed folder.
    ///
    /// # Errors
    /// When [`Cache::lock`] fails, or the folder cannot be moved.
    pub fn remove(&self, what: &str, folder: &Path) -> Result<bool, CacheError> {
        if !folder.exists() {
            return Ok(false);
        }
        let lock = self.lock(what)?;
        // Dropping the staging folder deletes it, and with it the folder that is moved into it.
        let staging = lock.staging()?;
        lock.place(folder, &staging.path().join("removed"))?;
        Ok(true)
    }

    /// Locks `what` like [`Cache::lock`], but shares the lock with all clones of this cache, for
    /// example between races that alternate in one folder.
    ///
    /// # Errors
    /// See [`Cache::lock`].
    pub fn keep(&self, what: &str) -> Result<Arc<Lock>, CacheError> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = kept.get(what).and_then(Weak::upgrade) {
            return Ok(lock);
        }
        let lock = Arc::new(self.lock(what)?);
        kept.insert(what.to_owned(), Arc::downgrade(&lock));
        Ok(lock)
    }

    /// Removes all shelves except the main lock's file and its folder. Returns the number of bytes
    /// that were freed, not counting lock files. Returns 0 if the cache does not exist. The marker
    /// and other files outside the shelves are kept.
    ///
    /// # Errors
    /// When the folder does not belong to heapdrome, is in use, or cannot be emptied.
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
    /// Creates a folder for work in progress. Dropping the returned value deletes the folder,
    /// unless the folder was renamed.
    ///
    /// # Errors
    /// When the folder cannot be created.
    pub fn staging(&self) -> Result<TempDir, CacheError> {
        let made = tempfile::Builder::new()
            .prefix("new-")
            .tempdir_in(&self.staging);
        made.map_err(failed("make a folder in", &self.staging))
    }

    /// Renames the folder `from` to `to`. If `to` exists, it is first moved into a staging folder,
    /// which is then deleted.
    ///
    /// # Errors
    /// When a folder cannot be moved, or the staging folder cannot be created.
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
        // `remove_dir` fails if the folder is not empty. A `TempDir` in it that is dropped later
        // removes only itself, so the folder may be left behind.
        let _ = std::fs::remove_dir(&self.staging);
    }
}

fn remove_folder(path: &Path) -> Result<(), CacheError> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed("remove", path)(error)),
        _ => Ok(()),
    }
}

/// Removes all lock files except the file of the main lock, which the caller holds.
fn remove_locks(folder: &Path) -> Result<(), CacheError> {
    let entries = std::fs::read_dir(folder).map_err(failed("read", folder))?;
    for entry in entries.flatten().filter(|it| it.file_name() != MAIN_LOCK) {
        std::fs::remove_file(entry.path()).map_err(failed("remove", &entry.path()))?;
    }
    Ok(())
}

/// Returns the total size of the files below `path` in bytes. Unreadable folders count as empty,
/// and links are not followed.
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
