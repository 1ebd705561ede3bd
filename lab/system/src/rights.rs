//! Rights of this process.

/// Whether it may do everything.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
