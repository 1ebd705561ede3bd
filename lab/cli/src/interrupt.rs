//! Ctrl-C: the first asks heapdrome to stop and report, the second ends it at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::failure::Failure;

/// The exit status after a second Ctrl-C, as shells have it.
const INTERRUPTED: i32 = 130;

/// A flag that becomes true at the first SIGINT, SIGTERM or SIGHUP.
///
/// # Errors
/// When a handler cannot be installed.
pub fn flag() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP]
        .into_iter()
        .filter(|signal| !is_ignored(*signal))
    {
        // The order matters: the second signal finds the flag raised and ends the process; the
        // launcher sees its socket close and takes every measured process with it.
        signal_hook::flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(&flag))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&flag)))
            .map_err(|error| Failure::Machine(format!("cannot handle signals: {error}")))?;
    }
    Ok(flag)
}

/// Whether whoever started heapdrome wants it to ignore a signal, as nohup does with SIGHUP.
fn is_ignored(signal: i32) -> bool {
    // SAFETY: a sigaction of zeros is a valid one, and only a place to write to here.
    let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: with no new action nothing changes, and `now` outlives the call.
    let asked = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut now) };
    asked == 0 && now.sa_sigaction == libc::SIG_IGN
}

/// Ends with [`Failure::Interrupted`] if the flag is raised.
///
/// # Errors
/// When it is.
pub fn check(flag: &AtomicBool) -> Result<(), Failure> {
    // Relaxed: the flag stands for itself and publishes nothing.
    if flag.load(Ordering::Relaxed) {
        Err(Failure::Interrupted)
    } else {
        Ok(())
    }
}
