//! Memory of the engine, which comes from the system and not from the allocator under test.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::ptr;

/// Bytes of a page.
const PAGE: usize = 4096;

/// Mapping that this value alone owns, and unmaps on drop.
#[derive(Debug)]
pub(super) struct Mapping {
    place: *mut u8,
    bytes: usize,
}

impl Mapping {
    /// Maps zeroed memory, and makes it resident so that later accesses cause no page faults.
    pub(super) fn zeros(bytes: usize) -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        Self::new(bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1)
    }

    /// Maps a file for reading. A page is in this process's memory only after [`Mapping::load`] or
    /// an access.
    pub(super) fn file(file: &File, bytes: usize) -> io::Result<Self> {
        Self::new(bytes, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd())
    }

    fn new(bytes: usize, access: i32, flags: i32, file: i32) -> io::Result<Self> {
        let bytes = bytes.max(1).next_multiple_of(PAGE);
        // SAFETY: a new mapping at an address that the system chooses changes no existing memory.
        let place = unsafe { libc::mmap(ptr::null_mut(), bytes, access, flags, file, 0) };
        match place == libc::MAP_FAILED {
            true => Err(io::Error::last_os_error()),
            false => Ok(Self {
                place: place.cast(),
                bytes,
            }),
        }
    }

    /// Returns the start address of the mapping, which is aligned to a page.
    pub(super) fn place(&self) -> *mut u8 {
        self.place
    }

    /// Returns the length of the mapping in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// Prefetches the pages of a part of a file. A kernel that cannot prefetch them reads them when
    /// they are used.
    pub(super) fn load(&self, offset: u64, bytes: u64) {
        self.advise(offset, bytes, libc::MADV_POPULATE_READ);
    }

    /// Removes the pages of a part of a file from this process's memory. The next access reads them
    /// again.
    pub(super) fn release(&self, offset: u64, bytes: u64) {
        self.advise(offset, bytes, libc::MADV_DONTNEED);
    }

    fn advise(&self, offset: u64, bytes: u64, advice: i32) {
        let begin = offset as usize / PAGE * PAGE;
        let end = ((offset + bytes) as usize).min(self.bytes);
        if begin < end {
            // SAFETY: the pages lie in this mapping. Only pages of files are released, and their
            // content stays in the file.
            unsafe { libc::madvise(self.place.add(begin).cast(), end - begin, advice) };
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and nothing borrows from it any longer.
        unsafe { libc::munmap(self.place.cast(), self.bytes) };
    }
}
