//! Folder of a run, which contains the counting library and the files that the library writes.

use std::ffi::CString;
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::WitnessError;
use crate::layout::FOLLOW;

/// The counting library, built together with this crate.
pub(crate) const LIBRARY: &[u8] =
    include_bytes!(concat!(env!("OUT_DIR"), "/libheapdrome_interpose.so"));

const NAME: &str = "libheapdrome_interpose.so";

/// Prefix of the name of a run's folder.
const PREFIX: &str = "heapdrome-witness-";

/// Name of the library until it is locked and complete.
const FRESH: &str = "new";

/// Maximum number of attempts to create a folder. An attempt fails if another heapdrome mistakes
/// the new folder for one that a killed run left behind.
const TRIES: u32 = 5;

/// Folder of one run. It contains the library, and the files that the library writes: a record of
/// each process's current program, or the rings of a recording.
#[derive(Debug)]
pub struct Home {
    folder: TempDir,
    /// The library's file, which stays locked while the folder is in use.
    _held: File,
}

/// Returns whether `LD_PRELOAD` can express a path. Spaces and colons end a path there, and `$` may
/// begin a token such as `$ORIGIN`. Tabs and newlines are not accepted, either.
pub(crate) fn speakable(path: &Path) -> bool {
    !path
        .as_os_str()
        .as_bytes()
        .iter()
        .any(|byte| b" :\t\n$".contains(byte))
}

impl Home {
    /// Creates the folder in the first suitable place: shared memory, `wanted`, or the system's
    /// temporary folder. Dropping this value removes the folder.
    ///
    /// # Errors
    /// Returns an error if none of the three is suitable, or this build has no counting library.
    pub fn create(wanted: &Path) -> Result<Self, WitnessError> {
        if LIBRARY.is_empty() {
            return Err(WitnessError::Unsupported);
        }
        let candidates = [
            Path::new("/dev/shm").to_owned(),
            wanted.to_owned(),
            std::env::temp_dir(),
        ];
        let mut tried = Vec::new();
        for parent in candidates {
            match Self::below(&parent) {
                Ok(home) => return Ok(home),
                Err(reason) => tried.push(format!("{}: {reason}", parent.display())),
            }
        }
        Err(WitnessError::NoFolder {
            tried: tried.join(", "),
        })
    }

    fn below(parent: &Path) -> Result<Self, String> {
        let parent = parent.canonicalize().map_err(|error| error.to_string())?;
        if !speakable(&parent) {
            return Err("its path holds a space or a colon".to_owned());
        }
        if forbids_programs(&parent) {
            return Err("mounted noexec".to_owned());
        }
        sweep(&parent);
        let (folder, held) = furnished(&parent).map_err(|error| error.to_string())?;
        // SAFETY: geteuid has no precondition.
        if unsafe { libc::geteuid() } == 0 {
            // Programs that run as root may switch to another user before they first allocate.
            let open = Permissions::from_mode(0o1777);
            std::fs::set_permissions(folder.path(), open).map_err(|error| error.to_string())?;
        }
        Ok(Self {
            folder,
            _held: held,
        })
    }

    /// Returns the library's path.
    #[must_use]
    pub fn library(&self) -> PathBuf {
        self.folder.path().join(NAME)
    }

    /// Returns the folder that contains the library.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Makes the library follow every block in programs that start from now on.
    pub(crate) fn follow_blocks(&self) -> Result<(), WitnessError> {
        let path = self.folder.path().join(FOLLOW);
        let failed = |source| WitnessError::CannotOpen {
            path: path.clone(),
            purpose: "mark",
            source,
        };
        File::create_new(&path)
            .and_then(|file| file.set_permissions(Permissions::from_mode(0o444)))
            .map_err(failed)
    }

    /// Returns the path of a process's record.
    pub(crate) fn record(&self, pid: i32) -> PathBuf {
        self.folder.path().join(pid.to_string())
    }
}

/// Creates a folder that contains the library. Returns the folder, which is removed when dropped,
/// and the locked library.
fn furnished(parent: &Path) -> io::Result<(TempDir, File)> {
    let mut tries = 0;
    loop {
        tries += 1;
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
        let swept = |error: &io::Error| {
            matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::WouldBlock
            )
        };
        match place_library(folder.path()) {
            Ok(held) => return Ok((folder, held)),
            Err(error) if swept(&error) && tries < TRIES => {}
            Err(error) => return Err(error),
        }
    }
}

/// Writes the library into a folder. The file is locked while it is still empty, and gets its final
/// name only when it is complete. Fails if another heapdrome's [`sweep`] removes the folder in the
/// meantime.
fn place_library(folder: &Path) -> io::Result<File> {
    let fresh = folder.join(FRESH);
    // Open for writing, because some network file systems refuse an exclusive lock on a file that
    // is only open for reading.
    let mut held = File::create_new(&fresh)?;
    lock(&held, libc::LOCK_EX)?;
    held.write_all(LIBRARY)?;
    held.set_permissions(Permissions::from_mode(0o555))?;
    std::fs::rename(&fresh, folder.join(NAME))?;
    Ok(held)
}

fn forbids_programs(folder: &Path) -> bool {
    let Ok(path) = CString::new(folder.as_os_str().as_bytes()) else {
        return true;
    };
    // SAFETY: the path ends with a zero. All-zero bytes are a valid `statvfs`, which outlives the
    // call.
    unsafe {
        let mut status: libc::statvfs = std::mem::zeroed();
        libc::statvfs(path.as_ptr(), &mut status) != 0 || status.f_flag & libc::ST_NOEXEC != 0
    }
}

/// Removes the folders that killed runs of this user left behind. The lock on the library in such a
/// folder is free.
fn sweep(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else {
        return;
    };
    // SAFETY: geteuid has no precondition.
    let user = unsafe { libc::geteuid() };
    for entry in entries.flatten() {
        let named = entry
            .file_name()
            .to_str()
            .is_some_and(|name| name.starts_with(PREFIX));
        let ours = entry
            .metadata()
            .is_ok_and(|status| status.is_dir() && status.uid() == user);
        if named && ours {
            sweep_folder(&entry.path());
        }
    }
}

/// Removes a folder if no process uses it. Errors are ignored, because another heapdrome may be
/// removing the folder, too.
fn sweep_folder(folder: &Path) {
    let library = File::open(folder.join(NAME)).or_else(|_| File::open(folder.join(FRESH)));
    match library {
        // The lock is held until the folder is gone. Another heapdrome that is about to lock the
        // same library then fails, and creates another folder instead.
        Ok(library) if lock(&library, libc::LOCK_SH).is_ok() => {
            let _ = std::fs::remove_dir_all(folder);
        }
        Ok(_) => {}
        // If the library is missing, the folder is empty or was completed a moment ago. This call
        // removes only an empty folder.
        Err(_) => {
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// Tries to lock a file without waiting. The lock is held until the file is closed.
fn lock(file: &File, kind: libc::c_int) -> io::Result<()> {
    // SAFETY: `file` keeps its descriptor open during the call.
    match unsafe { libc::flock(file.as_raw_fd(), kind | libc::LOCK_NB) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_heapdrome_left_is_swept_wherever_it_was() {
        let parent = tempfile::tempdir().expect("a folder");
        let folder = |name: &str| {
            let path = parent.path().join(name);
            std::fs::create_dir(&path).expect("the folder is ours");
            path
        };
        let file = |folder: &Path, name: &str| {
            File::create_new(folder.join(name)).expect("the folder is ours")
        };
        let empty = folder("heapdrome-witness-empty");
        let begun = folder("heapdrome-witness-begun");
        file(&begun, FRESH);
        let whole = folder("heapdrome-witness-whole");
        file(&whole, NAME);
        file(&whole, "4711");
        let beginning = folder("heapdrome-witness-beginning");
        let beginner = file(&beginning, FRESH);
        lock(&beginner, libc::LOCK_EX).expect("no other process has it");
        let foreign = folder("something-else");
        let (used, _held) = furnished(parent.path()).expect("a home");
        sweep(parent.path());
        for swept in [empty, begun, whole] {
            assert!(!swept.exists(), "{}", swept.display());
        }
        for kept in [beginning, foreign, used.path().join(NAME)] {
            assert!(kept.exists(), "{}", kept.display());
        }
    }

    #[test]
    fn folders_that_others_sweep_meanwhile_are_made_anew() {
        let parent = tempfile::tempdir().expect("a folder");
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    sweep(parent.path());
                }
            });
            let made: Vec<_> = (0..50).map(|_| furnished(parent.path())).collect();
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            for home in made {
                // This thread sweeps without a pause, which may exhaust all attempts. Real runs
                // sweep rarely.
                let Ok((folder, _held)) = home else { continue };
                assert_eq!(
                    std::fs::read(folder.path().join(NAME)).expect("it stays"),
                    LIBRARY
                );
            }
        });
    }
}
