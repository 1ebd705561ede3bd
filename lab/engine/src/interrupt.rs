//! Handling of Ctrl-C, SIGTERM and SIGHUP. The first signal asks heapdrome to stop and report, the
//! second ends heapdrome at once. When heapdrome ends, the launcher's socket closes, and the
//! launcher kills every measured process.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use heapdrome_system::interrupt;

use crate::failure::Failure;

/// Returns a flag that becomes true at the first SIGINT, SIGTERM or SIGHUP.
///
/// # Errors
/// When a handler cannot be installed.
pub fn flag() -> Result<Arc<AtomicBool>, Failure> {
    interrupt::flag().map_err(|error| Failure::Machine(format!("cannot handle signals: {error}")))
}

/// Returns [`Failure::Interrupted`] if the flag is set.
///
/// # Errors
/// When the flag is set.
pub fn check(flag: &AtomicBool) -> Result<(), Failure> {
    match interrupt::raised(flag) {
        true => Err(Failure::Interrupted),
        false => Ok(()),
    }
}
