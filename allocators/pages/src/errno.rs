//! `errno` is the caller's: an allocator that succeeds, and `free` always, leave it alone.

/// Puts `errno` back to what it was when this was made.
#[derive(Debug)]
#[must_use = "errno is put back when this is dropped"]
pub struct KeepErrno(libc::c_int);

impl KeepErrno {
    /// Remembers `errno`.
    #[inline]
    pub fn new() -> Self {
        // SAFETY: the address is the calling thread's own errno, always valid.
        Self(unsafe { *libc::__errno_location() })
    }
}

impl Default for KeepErrno {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for KeepErrno {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = self.0 };
    }
}
