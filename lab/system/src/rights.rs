//! Privileges of this process.

/// Returns whether this process runs as root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
