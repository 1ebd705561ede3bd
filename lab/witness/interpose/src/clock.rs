//! Reads the processor's counter, if the calling thread may.
//!
//! `prctl` can forbid a thread to read the counter: the kernel then kills the process at the next
//! reading. New threads and child processes inherit that. So each thread asks the kernel once
//! before its first reading, except in a sandbox, which may forbid the question.

use core::sync::atomic::{AtomicBool, Ordering};

use crate::kernel;
use crate::own::{SANDBOXED, control};
use crate::system;
use crate::thread::thread;

/// Whether a thread may read the processor's counter: the value of
/// [`Thread::clock`](crate::thread::Thread).
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
enum Right {
    /// The kernel has not been asked yet.
    Unknown = 0,
    Granted = 1,
    Denied = 2,
}

/// Whether a thread of this process has lost the right. Threads that begin in a sandbox then do not
/// read the counter.
static LOST: AtomicBool = AtomicBool::new(false);

/// Returns whether the calling thread may read the processor's counter.
#[inline]
pub fn may_read() -> bool {
    let right = thread().clock.get();
    right == Right::Granted as u32 || (right == Right::Unknown as u32 && find())
}

#[cold]
fn find() -> bool {
    // Relaxed: starting a thread makes earlier writes visible to it.
    let is_denied = if SANDBOXED.load(Ordering::Relaxed) {
        LOST.load(Ordering::Relaxed)
    } else {
        kernel::forbids_counter()
    };
    set(!is_denied);
    !is_denied
}

/// Records that the calling thread is about to lose or get the right to read the counter. Without
/// it, calls are stamped with the collector's latest beat, so the collector may have to repair
/// their order.
pub fn set(may_read: bool) {
    let right = if may_read {
        Right::Granted
    } else {
        LOST.store(true, Ordering::Relaxed);
        Right::Denied
    };
    thread().clock.set(right as u32);
}

/// Returns the processor's counter, or the collector's latest beat if the calling thread may not
/// read the counter.
pub fn clock() -> u64 {
    if may_read() {
        return system::ticks();
    }
    // Relaxed: an old beat only makes a time earlier.
    control().map_or(0, |control| control.beat.load(Ordering::Relaxed))
}

/// Returns the ticks that the timing of a call takes itself: the minimum of many tries with a
/// function that does nothing. Returns 0 if the calling thread may not read the counter.
pub fn calibrate() -> u64 {
    if !may_read() {
        return 0;
    }
    extern "C" fn nothing(word: usize) -> usize {
        word
    }
    // Called through an address that the compiler does not know, like the followed functions.
    let next: extern "C" fn(usize) -> usize = core::hint::black_box(nothing);
    let once = |_| {
        let before = system::fenced_ticks();
        core::hint::black_box(next(1));
        system::fenced_ticks().wrapping_sub(before)
    };
    (0..256).map(once).min().unwrap_or(0)
}
