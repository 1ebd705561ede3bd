//! Ctrl-C: the first asks for an end that reports and cleans up, the second ends the process at
//! once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// The exit status after a second Ctrl-C, as shells have it.
const INTERRUPTED: i32 = 130;

/// Returns a flag that becomes true at the first SIGINT, SIGTERM or SIGHUP.
///
/// # Errors
/// When a handler cannot be installed.
pub fn flag() -> io::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let signals = [SIGINT, SIGTERM, SIGHUP];
    for signal in signals.into_iter().filter(|signal| !is_ignored(*signal)) {
        // The order matters: the first signal finds the flag down and raises it, the second ends.
        signal_hook::flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(&flag))?;
        signal_hook::flag::register(signal, Arc::clone(&flag))?;
    }
    Ok(flag)
}

/// Whether the parent process asked for a signal to be ignored, as nohup does with SIGHUP.
fn is_ignored(signal: i32) -> bool {
    // SAFETY: a sigaction of zeros is a valid one, and only a place to write to here.
    let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: with no new action nothing changes, and `now` outlives the call.
    let asked = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut now) };
    asked == 0 && now.sa_sigaction == libc::SIG_IGN
}

/// Whether the flag is up.
pub fn raised(flag: &AtomicBool) -> bool {
    // Relaxed: the flag stands for itself and publishes nothing.
    flag.load(Ordering::Relaxed)
}
