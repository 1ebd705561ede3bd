//! Ctrl-C: the first asks heapdrome to stop and report, the second ends it at once. The launcher
//! sees its socket close then, and ends every measured process.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use heapdrome_system::interrupt;

use crate::failure::Failure;

/// A flag that becomes true at the first SIGINT, SIGTERM or SIGHUP.
///
/// # Errors
/// When a handler cannot be installed.
pub fn flag() -> Result<Arc<AtomicBool>, Failure> {
    interrupt::flag().map_err(|error| Failure::Machine(format!("cannot handle signals: {error}")))
}

/// Ends with [`Failure::Interrupted`] if the flag is raised.
///
/// # Errors
/// When it is.
pub fn check(flag: &AtomicBool) -> Result<(), Failure> {
    match interrupt::raised(flag) {
        true => Err(Failure::Interrupted),
        false => Ok(()),
    }
}
