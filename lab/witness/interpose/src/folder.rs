//! Finds this library's folder, and opens, maps and creates files in it.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::elf;
use crate::kernel;
use crate::layout::PATH_BYTES;
use crate::system::{self, ObjectInfo};

/// The folder of this library. It is kept for forked children, which must not take the loader's
/// lock, because another thread of the parent may have held it.
struct Kept {
    path: core::cell::UnsafeCell<[u8; PATH_BYTES]>,
    length: core::cell::UnsafeCell<usize>,
    state: AtomicU32,
}

const EMPTY: u32 = 0;
const WRITING: u32 = 1;
const READY: u32 = 2;

// SAFETY: one thread writes, after it has set `WRITING`; other threads read after they have seen
// `READY`.
unsafe impl Sync for Kept {}

static KEPT: Kept = Kept {
    path: core::cell::UnsafeCell::new([0; PATH_BYTES]),
    length: core::cell::UnsafeCell::new(0),
    state: AtomicU32::new(EMPTY),
};

/// Writes the path of a file in this library's folder to `path`, with a zero at its end. Returns
/// `None` if the folder is unknown or the path too long.
fn beside(name: &[u8], path: &mut [u8; PATH_BYTES]) -> Option<()> {
    let state = &KEPT.state;
    // Acquire: pairs with the release below, so the path and its length are visible.
    let folder = if state.load(Ordering::Acquire) == READY {
        // SAFETY: the state is `READY`, so no thread writes.
        unsafe {
            path.copy_from_slice(&*KEPT.path.get());
            *KEPT.length.get()
        }
    } else {
        let folder = own_folder(path)?;
        let claimed = state.compare_exchange(EMPTY, WRITING, Ordering::Relaxed, Ordering::Relaxed);
        if claimed.is_ok() {
            // SAFETY: this thread has set `WRITING`, so no other thread writes, and threads read
            // only after `READY`.
            unsafe {
                (&mut *KEPT.path.get()).copy_from_slice(path);
                *KEPT.length.get() = folder;
            }
            state.store(READY, Ordering::Release);
        }
        folder
    };
    path.get_mut(folder..folder + name.len())?
        .copy_from_slice(name);
    *path.get_mut(folder + name.len())? = 0;
    Some(())
}

/// Returns whether this library's folder contains a file of this name.
pub fn has(name: &[u8]) -> bool {
    let mut path = [0_u8; PATH_BYTES];
    // SAFETY: `beside` has ended the path with a zero.
    beside(name, &mut path).is_some()
        && unsafe {
            let file = kernel::open(path.as_ptr().cast(), system::O_CLOEXEC, 0);
            if file >= 0 {
                kernel::close(file);
            }
            file >= 0
        }
}

/// Maps a file of this library's folder, shared. If `new`, creates the file, which must not exist.
/// Returns `None` on failure, and then removes the new file.
pub fn map(name: &[u8], new: bool, length: usize) -> Option<*mut c_void> {
    let mut path = [0_u8; PATH_BYTES];
    beside(name, &mut path)?;
    if new && exceeds_limit(length) {
        return None;
    }
    let flags = if new {
        system::O_RDWR_CREAT_EXCL_CLOEXEC
    } else {
        system::O_RDWR_CLOEXEC
    };
    // SAFETY: `beside` has ended the path with a zero. A new file gets room before it is mapped, so
    // touching the mapping cannot fail for lack of space.
    unsafe {
        let path = path.as_ptr().cast::<c_char>();
        let file = kernel::open(path, flags, 0o600);
        if file < 0 {
            return None;
        }
        let room = !new || kernel::fallocate(file, length) || fill(file, length);
        let address = if room {
            kernel::map(length, system::MAP_SHARED, file)
        } else {
            null_mut()
        };
        kernel::close(file);
        if address.is_null() && new {
            kernel::unlink(path);
        }
        (!address.is_null()).then_some(address)
    }
}

/// Writes a new file into this library's folder. `write` calls the function that it receives with
/// each part of the contents. Removes the file if the process's limit on file sizes or a full disk
/// would truncate it.
pub fn write_new(name: &[u8], write: impl FnOnce(&mut dyn FnMut(&[u8]))) {
    let mut path = [0_u8; PATH_BYTES];
    if beside(name, &mut path).is_none() {
        return;
    }
    // SAFETY: `beside` has ended the path with a zero.
    let file = unsafe {
        kernel::open(
            path.as_ptr().cast(),
            system::O_RDWR_CREAT_EXCL_CLOEXEC,
            0o600,
        )
    };
    if file < 0 {
        return;
    }
    let (mut length, mut is_whole) = (0, true);
    write(&mut |part| {
        length += part.len();
        is_whole = is_whole
            && !exceeds_limit(length)
            && kernel::write(file, part) == part.len().cast_signed();
    });
    kernel::close(file);
    if !is_whole {
        // SAFETY: `beside` has ended the path with a zero.
        unsafe { kernel::unlink(path.as_ptr().cast()) };
    }
}

/// Returns whether a file of this length exceeds the process's limit on file sizes. Writing such a
/// file would send a signal that kills the process.
fn exceeds_limit(length: usize) -> bool {
    const FILE_SIZE: c_int = 1;
    kernel::limits(FILE_SIZE).is_some_and(|[soft, _]| (length as u64) > soft)
}

/// Writes the decimal digits of a number to the end of `digits`, and returns them.
pub fn decimal(mut number: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[first..];
        }
    }
}

/// Reserves room for a file by writing zeros, for file systems that cannot reserve it otherwise,
/// such as NFS. Returns false if that fails.
fn fill(file: c_int, length: usize) -> bool {
    static ZEROS: [u8; 4096] = [0; 4096];
    let mut left = length;
    while left > 0 {
        let written = kernel::write(file, &ZEROS[..left.min(ZEROS.len())]);
        if written <= 0 {
            return false;
        }
        left -= written.unsigned_abs().min(left);
    }
    true
}

struct Folder<'a> {
    path: &'a mut [u8; PATH_BYTES],
    length: Option<usize>,
}

/// Writes the path of this library's folder, with its last slash, to `path`. Returns its length;
/// `None` if the path is unknown or too long.
fn own_folder(path: &mut [u8; PATH_BYTES]) -> Option<usize> {
    let mut folder = Folder { path, length: None };
    // SAFETY: `visit` casts the data back to the type of `folder`.
    unsafe { system::dl_iterate_phdr(visit, (&raw mut folder).cast()) };
    return folder.length;

    unsafe extern "C" fn visit(object: *const ObjectInfo, _: usize, data: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid object, and `data` is `folder` above.
        let (object, folder) = unsafe { (&*object, &mut *data.cast::<Folder>()) };
        let (low, span) = elf::extent(object);
        if ((&raw const KEPT) as usize).wrapping_sub(low) >= span {
            return 0;
        }
        // SAFETY: the loader's names end with a zero.
        let name = unsafe { CStr::from_ptr(object.name) }.to_bytes();
        let length = name
            .iter()
            .rposition(|&byte| byte == b'/')
            .map_or(0, |slash| slash + 1);
        if length > 0 && length < PATH_BYTES {
            folder.path[..length].copy_from_slice(&name[..length]);
            folder.length = Some(length);
        }
        1
    }
}

/// Name of a file of this process: a prefix and numbers, separated by `-`.
pub struct Name {
    bytes: [u8; 64],
    length: usize,
}

impl Name {
    /// Returns the name of a file that belongs to the program `image` of the process `pid`.
    pub fn new(prefix: &str, pid: u32, image: u64) -> Self {
        let (bytes, length) = ([0; 64], 0);
        let mut name = Self { bytes, length };
        name.add(prefix.as_bytes());
        name.add(decimal(pid.into(), &mut [0; 20]));
        name.add(b"-");
        name.add(decimal(image, &mut [0; 20]));
        name
    }

    /// Appends a number, to distinguish several files of one program.
    pub fn and(mut self, number: u32) -> Self {
        self.add(b"-");
        self.add(decimal(number.into(), &mut [0; 20]));
        self
    }

    fn add(&mut self, bytes: &[u8]) {
        self.bytes[self.length..self.length + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }

    /// Returns the bytes of the name.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}
