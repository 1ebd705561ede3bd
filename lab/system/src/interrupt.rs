//! Ctrl-C, SIGTERM and SIGHUP: the first signal requests an orderly end, with a report and cleanup.
//! The second one ends the process immediately.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Exit status after a second signal: that of SIGINT, by the convention of shells.
const INTERRUPTED: i32 = 130;

/// Returns a flag that becomes true at the first SIGINT, SIGTERM or SIGHUP. The next one of these
/// signals ends the process. A signal that is ignored at the start stays ignored.
///
/// # Errors
/// When a handler cannot be installed.
pub fn flag() -> io::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let signals = [SIGINT, SIGTERM, SIGHUP];
    for signal in signals.into_iter().filter(|signal| !is_ignored(*signal)) {
        // The order matters. The first signal finds the flag unset and only sets it; the second
        // signal finds the flag set and ends the process.
        signal_hook::flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(&flag))?;
        signal_hook::flag::register(signal, Arc::clone(&flag))?;
    }
    Ok(flag)
}

/// Returns whether this process ignores a signal, as a process under nohup ignores SIGHUP.
fn is_ignored(signal: i32) -> bool {
    // SAFETY: all-zero bytes are a valid `sigaction`; the next call overwrites them.
    let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: a null new action leaves the signal's action unchanged; `now` is writable and
    // outlives the call.
    let asked = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut now) };
    asked == 0 && now.sa_sigaction == libc::SIG_IGN
}

/// Returns whether the flag is set.
pub fn raised(flag: &AtomicBool) -> bool {
    // Relaxed: a reader of the flag relies on no other memory that the signal handler wrote.
    flag.load(Ordering::Relaxed)
}
