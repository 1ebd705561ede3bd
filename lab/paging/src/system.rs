//! The kernel's interface for swap. Tests replace it with plain folders and simulated answers.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Flags of `swapon` for the highest priority, so that the kernel uses this area before any other.
const FIRST: i32 = 0x8000 | 0x7fff;

/// Interface to the kernel: folders of devices, and functions that write control files and enable
/// swap.
#[derive(Clone, Debug)]
pub(crate) struct System {
    /// Folder in which the kernel lists its devices, normally `/sys`.
    pub(crate) shown: PathBuf,
    /// Folder of the device files, normally `/dev`.
    pub(crate) devices: PathBuf,
    /// Writes a request into a control file of the kernel.
    pub(crate) ask: fn(&Path, &str) -> io::Result<()>,
    /// Enables swap on a file or device, with the highest priority.
    pub(crate) swap_on: fn(&Path) -> io::Result<()>,
}

impl System {
    /// Returns the interface of this machine.
    pub(crate) fn real() -> Self {
        Self {
            shown: PathBuf::from("/sys"),
            devices: PathBuf::from("/dev"),
            ask: |path, text| fs::write(path, text),
            swap_on,
        }
    }
}

fn swap_on(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: `path` is a `CString`, so it ends with a zero byte, and it outlives the call.
    match unsafe { libc::swapon(path.as_ptr(), FIRST) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
