//! Items that the lab makes outside its own files, and their removal.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use heapdrome_schema::Bytes;
use serde::{Deserialize, Serialize};

use crate::system::System;
use crate::{Error, members};

/// The prefix of the names of all swap files and groups that the lab makes.
pub(crate) const PREFIX: &str = "heapdrome-paging-";
/// The signature at the end of the first page of a swap area.
pub(crate) const SWAP_MARK: &[u8; 10] = b"SWAPSPACE2";

/// An item that the lab makes outside its own files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Item {
    /// A file that is or was a swap area.
    SwapFile {
        /// The path of the file.
        path: PathBuf,
    },
    /// A compressed block device in memory.
    Zram {
        /// Number of the device.
        number: u32,
        /// Size of the device, which identifies it.
        bytes: Bytes,
    },
    /// A compressed block device that the lab is requesting from the kernel. It has no size yet.
    UnsizedZram {
        /// Number that the kernel is expected to assign to the device.
        number: u32,
    },
    /// A control group, with the processes in it.
    Group {
        /// Folder of the group.
        folder: PathBuf,
    },
    /// A kernel setting, such as the one in `/sys/kernel/mm/transparent_hugepage/enabled`.
    Setting {
        /// Path of the setting's file.
        path: PathBuf,
        /// The value before the change.
        before: String,
        /// The value that the lab set.
        chosen: String,
    },
}

/// The result of removing an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Undone {
    /// The item was removed.
    Removed,
    /// The item no longer existed, or was never made.
    Absent,
    /// Another item is in its place and was left unchanged.
    Foreign,
}

impl std::fmt::Display for Item {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::SwapFile { path } => write!(f, "swap file {}", path.display()),
            Self::Zram { number, .. } | Self::UnsizedZram { number } => {
                write!(f, "swap device /dev/zram{number}")
            }
            Self::Group { folder } => write!(f, "control group {}", folder.display()),
            Self::Setting { path, chosen, .. } => {
                write!(f, "the setting {chosen} of {}", path.display())
            }
        }
    }
}

impl Item {
    /// Returns whether a restart of the machine removes the item.
    pub(crate) fn dies_with_the_system(&self) -> bool {
        !matches!(self, Self::SwapFile { .. })
    }

    /// Removes the item. Changes nothing if the item does not exist or is not the one that the lab
    /// made.
    pub(crate) fn undo(&self, system: &System) -> Result<Undone, Error> {
        match self {
            Self::SwapFile { path } => remove_swap_file(path),
            Self::Zram { number, bytes } => remove_zram(system, *number, *bytes),
            Self::UnsizedZram { number } => remove_zram(system, *number, Bytes(0)),
            Self::Group { folder } => remove_group(folder),
            Self::Setting {
                path,
                before,
                chosen,
            } => put_back(path, before, chosen),
        }
        .map_err(|error| Error::Left {
            what: self.to_string(),
            reason: error.to_string(),
        })
    }
}

/// Reads the current value of a kernel setting from its file. The file lists all choices, and marks
/// the current one with brackets.
pub(crate) fn current(path: &Path) -> io::Result<String> {
    let text = fs::read_to_string(path)?;
    let chosen = heapdrome_system::kernel::chosen(&text).map(str::to_owned);
    chosen.ok_or_else(|| io::Error::other("it has no value in brackets"))
}

/// Restores a setting, unless another process has changed it in the meantime.
pub(crate) fn put_back(path: &Path, before: &str, chosen: &str) -> io::Result<Undone> {
    let now = current(path)?;
    if now == chosen {
        fs::write(path, before)?;
        return Ok(Undone::Removed);
    }
    Ok(match now == before {
        true => Undone::Absent,
        false => Undone::Foreign,
    })
}

fn has_prefix(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name.as_bytes().starts_with(PREFIX.as_bytes()))
}

fn remove_swap_file(path: &Path) -> io::Result<Undone> {
    if !has_prefix(path) {
        return Ok(Undone::Foreign);
    }
    match fs::symlink_metadata(path) {
        Ok(data) if data.is_file() => {}
        Ok(_) => return Ok(Undone::Foreign),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Undone::Absent),
        Err(error) => return Err(error),
    }
    if is_active(path) {
        swap_off(path)?;
    }
    fs::remove_file(path)?;
    Ok(Undone::Removed)
}

/// Removes a device if it has this size, or no size yet.
fn remove_zram(system: &System, number: u32, bytes: Bytes) -> io::Result<Undone> {
    let block = system.shown.join(format!("block/zram{number}"));
    let size = match fs::read_to_string(block.join("disksize")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Undone::Absent),
        size => size.unwrap_or_default(),
    };
    match size.trim().parse::<u64>() {
        // A device without a size cannot hold swap, and the kernel refuses to remove an open
        // device.
        Ok(0) => {}
        Ok(size) if Bytes(size) == bytes => {
            let device = system.devices.join(format!("zram{number}"));
            if is_active(&device) {
                swap_off(&device)?;
            }
            (system.ask)(&block.join("reset"), "1")?;
        }
        _ => return Ok(Undone::Foreign),
    }
    let control = system.shown.join("class/zram-control/hot_remove");
    (system.ask)(&control, &number.to_string())?;
    Ok(Undone::Removed)
}

fn remove_group(folder: &Path) -> io::Result<Undone> {
    /// Maximum wait until the kernel has removed the last process from a group.
    const PATIENCE: Duration = Duration::from_secs(2);
    if !has_prefix(folder) {
        return Ok(Undone::Foreign);
    }
    // Processes that a killed lab started may still run in the group.
    members::kill_all(folder)?;
    let end = Instant::now() + PATIENCE;
    loop {
        match fs::remove_dir(folder) {
            Ok(()) => return Ok(Undone::Removed),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Undone::Absent),
            Err(error) if Instant::now() >= end => return Err(error),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// Returns whether a file or device is an active swap area.
pub(crate) fn is_active(path: &Path) -> bool {
    let text = fs::read("/proc/swaps").unwrap_or_default();
    is_listed(&text, path)
}

/// Returns whether `/proc/swaps` lists the path. The file escapes spaces and some other characters
/// as octal numbers, such as `\040`.
fn is_listed(swaps: &[u8], path: &Path) -> bool {
    let line_of = |line: &[u8]| {
        let end = line.iter().position(|byte| *byte == b' ' || *byte == b'\t');
        unescaped(&line[..end.unwrap_or(line.len())])
    };
    let mut lines = swaps.split(|byte| *byte == b'\n').skip(1);
    lines.any(|line| line_of(line) == path.as_os_str().as_bytes())
}

fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let octal = (*first == b'\\')
            .then(|| after.get(..3))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        out.push(octal.unwrap_or(*first));
        rest = if octal.is_some() { &after[3..] } else { after };
    }
    out
}

fn swap_off(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: `path` is a `CString`, so it ends with a zero byte, and it outlives the call.
    match unsafe { libc::swapoff(path.as_ptr()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swap_areas_are_found_whatever_their_names() {
        let swaps =
            b"Filename\tType\n/var/a\\040b/heap\\134x  file 1 0 -2\n/dev/zram0 partition 1\n";
        assert!(is_listed(swaps, Path::new("/var/a b/heap\\x")));
        assert!(is_listed(swaps, Path::new("/dev/zram0")));
        assert!(!is_listed(swaps, Path::new("/dev/zram")));
        assert!(!is_listed(swaps, Path::new("Filename")));
    }

    fn undone(item: &Item) -> Result<Undone, Error> {
        item.undo(&System::real())
    }

    #[test]
    fn what_the_lab_did_not_make_is_left_alone() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let foreign = folder.path().join("swapfile");
        fs::write(&foreign, "precious").expect("written");
        let item = Item::SwapFile {
            path: foreign.clone(),
        };
        assert_eq!(undone(&item).expect("nothing to do"), Undone::Foreign);
        assert!(foreign.exists());
        let group = folder.path().join("not-ours");
        fs::create_dir(&group).expect("made");
        let item = Item::Group {
            folder: group.clone(),
        };
        assert_eq!(undone(&item).expect("nothing to do"), Undone::Foreign);
        assert!(group.exists());
        let link = folder.path().join(format!("{PREFIX}link"));
        std::os::unix::fs::symlink(&foreign, &link).expect("linked");
        let item = Item::SwapFile { path: link.clone() };
        assert_eq!(undone(&item).expect("nothing to do"), Undone::Foreign);
        assert!(foreign.exists() && fs::symlink_metadata(&link).is_ok());
        fs::remove_file(&link).expect("removed");
        assert_eq!(undone(&item).expect("nothing to do"), Undone::Absent);
    }

    /// Uses folders in the kernel's layout, with a device number that no machine has. The lab must
    /// remove a device without a size. It must not remove a device of another size, which belongs
    /// to another program.
    #[test]
    fn a_device_without_a_size_is_removed_and_one_of_another_size_is_not() {
        let home = tempfile::tempdir().expect("a temporary folder");
        let block = home.path().join("block/zram4294967295");
        let control = home.path().join("class/zram-control");
        let system = System {
            shown: home.path().to_owned(),
            ..System::real()
        };
        fs::create_dir_all(&block).expect("made");
        fs::create_dir_all(&control).expect("made");
        let removed = |size: &str, bytes: u64| {
            fs::write(block.join("disksize"), size).expect("written");
            fs::write(control.join("hot_remove"), "").expect("written");
            let undone = remove_zram(&system, u32::MAX, Bytes(bytes)).expect("nothing fails");
            let told = fs::read_to_string(control.join("hot_remove")).expect("read");
            assert_eq!(told.is_empty(), undone == Undone::Foreign);
            told == u32::MAX.to_string()
        };
        assert!(removed("0\n", 0) && removed("0\n", 4096));
        assert!(!removed("4096\n", 0) && !removed("8192\n", 4096));
        assert!(removed("4096\n", 4096) && block.join("reset").exists());
        let gone = remove_zram(&system, 0, Bytes(4096));
        assert_eq!(gone.expect("what is not there need not go"), Undone::Absent);
    }

    #[test]
    fn a_group_with_something_in_it_is_told_of() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let group = folder.path().join(format!("{PREFIX}1"));
        fs::create_dir_all(group.join("inner")).expect("made");
        let error = undone(&Item::Group { folder: group }).expect_err("not empty");
        assert!(error.to_string().contains("paging clean"), "{error}");
    }
}
