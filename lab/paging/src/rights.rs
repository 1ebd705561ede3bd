//! What this process may do.

/// Whether it may do everything.
pub(crate) fn is_root() -> bool {
    // SAFETY: asking for the user has no preconditions.
    unsafe { libc::geteuid() == 0 }
}
