//! Preserves `errno`: `free` must never change it, and an allocator's other functions may change it
//! only if they fail.

/// Guard that saves `errno` when it is created, and restores it when it is dropped.
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
