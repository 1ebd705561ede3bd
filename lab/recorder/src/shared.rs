//! Files that the collector and the recorded processes both map.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

/// A type whose value in shared memory may be read at any time.
///
/// # Safety
/// Every bit pattern of the type is valid. Every field is atomic, or no process writes it any
/// longer when another process reads it.
pub(crate) unsafe trait Shareable {}

// SAFETY: all fields are atomic numbers, for which every bit pattern is valid.
unsafe impl Shareable for heapdrome_witness::ring::Control {}

// SAFETY: every bit pattern is valid, because all fields are numbers and bytes. Fields that are not
// atomic are written before the magic, and [`crate::rings`] reads no ring without a magic.
unsafe impl Shareable for heapdrome_witness::ring::Ring {}

// SAFETY: all fields are atomic numbers, for which every bit pattern is valid.
unsafe impl Shareable for heapdrome_witness::stack_ring::StackRing {}

/// A value in a file that is mapped as shared memory.
#[derive(Debug)]
pub(crate) struct Shared<T: Shareable>(NonNull<T>);

// SAFETY: the mapping belongs to this value, not to a thread. By the contract of `Shareable`, any
// thread may read the content at any time.
unsafe impl<T: Shareable> Send for Shared<T> {}

impl<T: Shareable> Shared<T> {
    /// Maps a file.
    ///
    /// # Errors
    /// Returns an error if the file is too short or cannot be mapped.
    pub(crate) fn map(file: &File) -> io::Result<Self> {
        let length = size_of::<T>();
        if file.metadata()?.len() < length as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address chosen by the kernel does not affect existing memory.
        // The file is long enough and is never shortened.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                protection,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        match NonNull::new(address.cast::<T>()) {
            Some(value) if address != libc::MAP_FAILED => Ok(Self(value)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl<T: Shareable> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the mapping is page-aligned, has room for a `T`, and stays until the value is
        // dropped. By the contract of `Shareable`, its bytes are a valid `T`, and other processes
        // write only to atomics, or to fields that this process does not read yet.
        unsafe { self.0.as_ref() }
    }
}

impl<T: Shareable> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping has this length, and no reference outlives the value.
        unsafe { libc::munmap(self.0.as_ptr().cast(), size_of::<T>()) };
    }
}

/// Control memory of the recording. Dropping this value ends the recording for all processes, even
/// if the collector fails.
pub(crate) struct Closing(pub Shared<heapdrome_witness::ring::Control>);

impl Closing {
    pub(crate) fn close(&self) {
        self.0.closed.store(1, std::sync::atomic::Ordering::Relaxed);
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        self.close();
    }
}
