//! What this process may do.

/// Whether it may do everything.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
