//! The temporary folder in which data are written, beside the one that they are for.
//!
//! Its owner holds a lock on it, which the kernel takes back when the owner is killed. So a later
//! run can tell a folder that was left from one that is in use.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use fs4::fs_std::FileExt;
use tempfile::TempDir;

use crate::error::CatalogError;
use crate::manifest;

/// What the names of temporary folders begin with, before the name of the folder they are for.
const PREFIX: &str = ".heapdrome-catalog-";

/// A locked temporary folder, which is removed unless it is put in place.
pub(crate) struct Staging {
    folder: TempDir,
    /// Keeps the lock. `None` where the file system has no locks; nobody can hold one there, so
    /// nobody takes the folder for a left one.
    _lock: Option<File>,
}

impl Staging {
    /// Makes a temporary folder for `target`, after removing those that killed runs have left.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(crate) fn beside(target: &Path) -> Result<Self, CatalogError> {
        let (parent, prefix) = (parent(target), prefix(target));
        remove_left(parent, &prefix);
        loop {
            let folder = tempfile::Builder::new()
                .prefix(&prefix)
                .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777))
                .tempdir_in(parent)
                .map_err(|source| write_error(target, source))?;
            let lock = lock(folder.path());
            // Another run may have removed the folder between its making and its locking.
            if folder.path().is_dir() {
                return Ok(Self {
                    folder,
                    _lock: lock,
                });
            }
        }
    }

    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Renames the folder to its target, which must not exist or be an empty folder.
    ///
    /// # Errors
    /// When it cannot be renamed; it is removed then.
    pub(crate) fn put_in_place(self, target: &Path) -> Result<(), CatalogError> {
        let sync = |path: &Path| File::open(path).and_then(|folder| folder.sync_all());
        sync(self.path()).map_err(|source| write_error(target, source))?;
        std::fs::rename(self.path(), target).map_err(|source| write_error(target, source))?;
        // It has another name now, so there is nothing left to remove.
        let _ = self.folder.keep();
        sync(parent(target)).map_err(|source| CatalogError::Read {
            path: target.to_owned(),
            source,
        })
    }
}

fn write_error(target: &Path, source: io::Error) -> CatalogError {
    CatalogError::Write {
        path: target.to_owned(),
        source,
    }
}

/// The folder in which `path` is.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// What the names of temporary folders for `target` begin with.
fn prefix(target: &Path) -> String {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    // Cut, since a file name has at most 255 bytes and some random letters follow.
    let name: String = name.chars().take(40).collect();
    format!("{PREFIX}{name}-")
}

/// Locks a folder, if nobody else has and the file system can.
fn lock(folder: &Path) -> Option<File> {
    let opened = File::open(folder).ok()?;
    matches!(FileExt::try_lock_exclusive(&opened), Ok(true)).then_some(opened)
}

/// Removes the temporary folders that killed runs have left. A folder is one if its name begins so,
/// nobody has it locked, and nothing is in it but files that gen-data writes.
fn remove_left(parent: &Path, prefix: &str) {
    let Ok(entries) = std::fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let named = entry.file_name().to_string_lossy().starts_with(prefix);
        let folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if named && folder {
            remove_if_left(&entry.path());
        }
    }
}

fn remove_if_left(folder: &Path) {
    let Some(_lock) = lock(folder) else { return };
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    let entries: Vec<_> = entries.flatten().collect();
    if !entries.iter().all(is_ours) {
        return;
    }
    // What cannot be removed stays; it is in nobody's way.
    for entry in entries {
        let _ = std::fs::remove_file(entry.path());
    }
    let _ = std::fs::remove_dir(folder);
}

/// Whether gen-data writes files with this name.
fn is_ours(entry: &std::fs::DirEntry) -> bool {
    let file = entry.file_type().is_ok_and(|kind| kind.is_file());
    let name = entry.file_name();
    let name = name.to_string_lossy();
    let set = name
        .strip_prefix("set-")
        .and_then(|rest| rest.strip_suffix(".bin"));
    let number = set.is_some_and(|digits| digits.len() == 3 && digits.parse::<u16>().is_ok());
    file && (number || name == manifest::FILE)
}

/// The name of the file of a data set.
pub(crate) fn set_file(set: u32) -> String {
    format!("set-{set:03}.bin")
}

/// The path of a data set's file in a folder.
pub(crate) fn set_path(folder: &Path, set: u32) -> PathBuf {
    folder.join(set_file(set))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).expect("readable").flatten();
        entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn what_is_not_put_in_place_is_removed() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let target = root.path().join("data set");
        let staging = Staging::beside(&target).expect("made");
        std::fs::write(set_path(staging.path(), 0), "x").expect("written");
        assert_eq!(names(root.path()).len(), 1);
        drop(staging);
        assert_eq!(names(root.path()), Vec::<String>::new());
    }

    #[test]
    fn only_folders_that_a_killed_run_left_are_removed() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let target = root.path().join("data");
        let in_use = Staging::beside(&target).expect("made");
        let make = |name: &str, file: &str| {
            let folder = root.path().join(name);
            std::fs::create_dir(&folder).expect("made");
            std::fs::write(folder.join(file), "x").expect("written");
            name.to_owned()
        };
        make(".heapdrome-catalog-data-left", "set-000.bin");
        let mut kept = vec![
            make(".heapdrome-catalog-data-foreign", "thesis.txt"),
            make(".heapdrome-catalog-other-left", "set-000.bin"),
            make("data-1", "set-000.bin"),
        ];
        kept.push(
            in_use
                .path()
                .file_name()
                .expect("named")
                .to_string_lossy()
                .into_owned(),
        );
        drop(Staging::beside(&target).expect("made"));
        let mut found = names(root.path());
        found.sort();
        kept.sort();
        assert_eq!(found, kept);
    }

    #[test]
    fn what_is_in_the_way_is_not_overwritten() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let target = root.path().join("data");
        std::fs::create_dir(&target).expect("made");
        std::fs::write(target.join("thesis.txt"), "x").expect("written");
        let staging = Staging::beside(&target).expect("made");
        assert!(staging.put_in_place(&target).is_err());
        assert_eq!(names(root.path()), ["data"]);
        assert_eq!(names(&target), ["thesis.txt"]);
    }
}
