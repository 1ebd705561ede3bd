//! Swap that the lab makes and removes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use heapdrome_schema::Bytes;
use heapdrome_system::FileError;
use heapdrome_system::kernel::keyed;
use heapdrome_system::rights::is_root;
use rustix::param::page_size;

use crate::item::{PREFIX, SWAP_MARK};
use crate::ledger::unique_name;
use crate::system::System;
use crate::words::size;
use crate::{Error, Item, Ledger, Made};

/// Minimum number of bytes that stay free on the disk.
const LEAVE_FREE: Bytes = Bytes::from_gib(1);

/// The medium of the swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwapKind {
    /// A file.
    File,
    /// A compressed device in memory.
    Zram,
}

/// A request for swap, such as `file:8G` or `zram:4G`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwapRequest {
    /// Medium of the swap area.
    pub kind: SwapKind,
    /// Size of the swap area.
    pub bytes: Bytes,
}

impl std::fmt::Display for SwapRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = match self.kind {
            SwapKind::File => "file",
            SwapKind::Zram => "zram",
        };
        write!(f, "{kind}:{}", size(self.bytes))
    }
}

impl FromStr for SwapRequest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("invalid swap '{text}': write file:8G or zram:4G");
        let (kind, bytes) = text.split_once(':').ok_or_else(wrong)?;
        let kind = match kind {
            "file" => SwapKind::File,
            "zram" => SwapKind::Zram,
            _ => return Err(wrong()),
        };
        let bytes = crate::words::bytes(bytes).map_err(|_| wrong())?;
        if bytes < Bytes::from_mib(16) {
            return Err(format!("swap must be at least 16M, got {text}"));
        }
        Ok(Self { kind, bytes })
    }
}

/// An active swap area that the lab made. Dropping it removes the area.
#[derive(Debug)]
pub struct Swap(Made);

impl Swap {
    /// Makes the swap area. A file is created in `folder`.
    ///
    /// # Errors
    /// When permissions, free space or the kernel do not allow it, or the ledger cannot be written.
    /// Everything made so far is removed then.
    pub fn make(request: SwapRequest, folder: &Path, ledger: &Arc<Ledger>) -> Result<Self, Error> {
        if !is_root() {
            return Err(Error::missing(
                "swap cannot be made without root",
                "run the same command with sudo",
            ));
        }
        match request.kind {
            SwapKind::File => Self::make_file(request.bytes, folder, ledger),
            SwapKind::Zram => Self::make_zram(request.bytes, ledger),
        }
    }

    /// Removes the swap area. The kernel first reads back all pages in it.
    ///
    /// # Errors
    /// When the area cannot be removed, or the ledger cannot be written. The next lab tries again.
    pub fn remove(self) -> Result<(), Error> {
        self.0.remove()
    }

    fn make_file(bytes: Bytes, folder: &Path, ledger: &Arc<Ledger>) -> Result<Self, Error> {
        let free = free_disk(folder).map_err(FileError::of("examine", folder))?;
        if free < bytes + LEAVE_FREE {
            return Err(Error::missing(
                format!(
                    "{} has {} free, too little for a swap file of {}",
                    folder.display(),
                    size(free),
                    size(bytes)
                ),
                "name another folder with --swap-folder, or less swap (1G stays free)",
            ));
        }
        Self::swap_to_new_file(bytes, folder, ledger)
    }

    fn swap_to_new_file(bytes: Bytes, folder: &Path, ledger: &Arc<Ledger>) -> Result<Self, Error> {
        let folder = folder
            .canonicalize()
            .map_err(FileError::of("find", folder))?;
        let path = folder.join(format!("{PREFIX}swap-{}", unique_name()));
        let made = ledger.making(Item::SwapFile { path: path.clone() })?;
        let opened = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path);
        let file = match opened {
            Ok(file) => file,
            Err(error) => {
                made.forget()?;
                return Err(FileError::of("make", &path)(error).into());
            }
        };
        allocate(&file, bytes)
            .and_then(|()| format(&file, bytes))
            .map_err(FileError::of("write", &path))?;
        (ledger.system().swap_on)(&path).map_err(|error| {
            refused(
                &error,
                "the file system of the folder",
                "name a folder on ext4 or xfs with --swap-folder",
            )
        })?;
        Ok(Self(made))
    }

    fn make_zram(bytes: Bytes, ledger: &Arc<Ledger>) -> Result<Self, Error> {
        let bytes = bytes.rounded_up_to(page());
        let (number, made) = own_zram(bytes, ledger)?;
        let System {
            shown,
            devices,
            ask,
            swap_on,
        } = ledger.system();
        let sized = shown.join(format!("block/zram{number}/disksize"));
        ask(&sized, &bytes.0.to_string()).map_err(|error| {
            let missing = format!(
                "the kernel refuses a zram device of {} ({error})",
                size(bytes)
            );
            Error::missing(missing, "ask for less, or use --swap file:8G instead")
        })?;
        let device = devices.join(format!("zram{number}"));
        OpenOptions::new()
            .write(true)
            .open(&device)
            .and_then(|file| format(&file, bytes))
            .map_err(FileError::of("write", &device))?;
        swap_on(&device).map_err(|error| refused(&error, "the kernel", "use --swap file:8G"))?;
        Ok(Self(made))
    }
}

/// Creates a device that will get the size `bytes`. The kernel assigns the device number on
/// creation. If the process is killed at that moment, the device must not stay behind, so the
/// expected number is written to the ledger first.
fn own_zram(bytes: Bytes, ledger: &Arc<Ledger>) -> Result<(u32, Made), Error> {
    let shown = &ledger.system().shown;
    let number = free_number(&shown.join("block"));
    let asked = ledger.making(Item::UnsizedZram { number })?;
    let number = match new_zram(&shown.join("class/zram-control")) {
        Ok(number) => number,
        Err(error) => {
            asked.forget()?;
            return Err(error);
        }
    };
    let made = ledger.making(Item::Zram { number, bytes })?;
    asked.forget()?;
    Ok((number, made))
}

/// Returns the number that the kernel will assign to the next device: the lowest free one.
fn free_number(blocks: &Path) -> u32 {
    let free = |number: &u32| !blocks.join(format!("zram{number}")).exists();
    (0..u32::MAX).find(free).unwrap_or(u32::MAX)
}

/// Makes the kernel create one more zram device. Returns the device number.
fn new_zram(control: &Path) -> Result<u32, Error> {
    let text = fs::read_to_string(control.join("hot_add")).map_err(|error| {
        Error::missing(
            format!("the kernel offers no zram device ({error})"),
            "load the module with modprobe zram, or use --swap file:8G",
        )
    })?;
    text.trim().parse().map_err(|_| {
        Error::missing(
            "the kernel created no zram device",
            "use --swap file:8G instead",
        )
    })
}

fn refused(error: &io::Error, who: &str, fix: &str) -> Error {
    Error::missing(format!("{who} does not take swap ({error})"), fix)
}

fn page() -> Bytes {
    Bytes(page_size() as u64)
}

fn free_disk(folder: &Path) -> io::Result<Bytes> {
    let found = rustix::fs::statvfs(folder)?;
    Ok(Bytes(found.f_bavail) * found.f_frsize)
}

/// Allocates all blocks of the file, because a swap file must not have holes.
fn allocate(file: &File, bytes: Bytes) -> io::Result<()> {
    let length = libc::off_t::try_from(bytes.0).map_err(io::Error::other)?;
    // SAFETY: `file` keeps the descriptor open during the call; no memory is passed.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Writes the first page of a swap area in the layout of the kernel's `union swap_header`.
fn format(mut file: &File, bytes: Bytes) -> io::Result<()> {
    let page = page();
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&header(page, bytes.0 / page.0))?;
    file.sync_all()
}

fn header(page: Bytes, pages: u64) -> Vec<u8> {
    const VERSION: u32 = 1;
    let mut first = vec![0; page.0 as usize];
    let last = u32::try_from(pages - 1).unwrap_or(u32::MAX);
    first[1024..1028].copy_from_slice(&VERSION.to_ne_bytes());
    first[1028..1032].copy_from_slice(&last.to_ne_bytes());
    let mark = first.len() - SWAP_MARK.len();
    first[mark..].copy_from_slice(SWAP_MARK);
    first
}

/// Returns the free swap of this machine, in all swap areas.
#[must_use]
pub fn free_swap() -> Bytes {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    Bytes::from_kib(keyed(&text, "SwapFree:").unwrap_or(0))
}

#[cfg(test)]
#[path = "swap_tests.rs"]
mod tests;
