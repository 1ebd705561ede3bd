//! `errno` belongs to the caller: an allocator that succeeds, and `free` always, leave it alone.

/// Guard that restores `errno` when it is dropped to its value when the guard was created.
#[derive(Debug)]
#[must_use = "errno is put back when this is dropped"]
pub struct KeepErrno(libc::c_int);

impl KeepErrno {
    /// Saves `errno`.
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
        // SAFETY: the address is the calling thread's own errno, always valid.
        unsafe { *libc::__errno_location() = self.0 };
    }
}
