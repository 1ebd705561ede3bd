//! The kernel, as far as swap goes. A test has plain folders in its place, and answers of its own.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The highest priority that there is, so that this area is used before any other.
const FIRST: i32 = 0x8000 | 0x7fff;

/// Where devices are, and how swap is asked for.
#[derive(Clone, Debug)]
pub(crate) struct System {
    /// Where the kernel shows its devices.
    pub(crate) shown: PathBuf,
    /// Where they are opened.
    pub(crate) devices: PathBuf,
    /// Writes into a file in which the kernel takes requests.
    pub(crate) ask: fn(&Path, &str) -> io::Result<()>,
    /// Begins to swap to a file or device, before all others.
    pub(crate) swap_on: fn(&Path) -> io::Result<()>,
}

impl System {
    /// That of this machine.
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
    // SAFETY: the path ends with a zero and outlives the call.
    match unsafe { libc::swapon(path.as_ptr(), FIRST) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
