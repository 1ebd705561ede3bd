//! Reads the processor's counter if the calling thread may, and calibrates the timing of calls.
//!
//! `prctl` can forbid a thread to read the processor's counter: the next reading then raises
//! SIGSEGV. New threads and child processes inherit the prohibition. So each thread asks the kernel
//! before its first reading, except in a sandbox, which may forbid the system call.

use core::sync::atomic::{AtomicBool, Ordering};

use crate::kernel;
use crate::own::{control, is_sandboxed};
use crate::system;
use crate::thread::thread;

/// Right of a thread to read the processor's counter, as stored in
/// [`Thread::clock`](crate::thread::Thread).
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
enum Right {
    /// The kernel has not been asked yet.
    Unknown = 0,
    Granted = 1,
    Denied = 2,
}

/// Whether a thread of this process was found without the right to read the counter, or has given
/// it up. If so, a thread in a sandbox whose right is unknown does not read the counter.
static LOST: AtomicBool = AtomicBool::new(false);

/// Returns whether the calling thread may read the processor's counter.
#[inline]
pub fn may_read() -> bool {
    let right = thread().clock.get();
    right == Right::Granted as u32 || (right == Right::Unknown as u32 && find())
}

#[cold]
fn find() -> bool {
    // Relaxed: a thread begins with the right of the thread that starts it, and the start makes
    // that thread's earlier store to `LOST` visible.
    let is_denied = if is_sandboxed() {
        LOST.load(Ordering::Relaxed)
    } else {
        kernel::forbids_counter()
    };
    set(!is_denied);
    !is_denied
}

/// Records whether the calling thread may read the counter. A thread that is about to lose the
/// right records the loss beforehand. A thread without the right stamps its calls with the
/// collector's latest beat, so the collector may have to repair the order of the calls.
pub fn set(may_read: bool) {
    let right = if may_read {
        Right::Granted
    } else {
        LOST.store(true, Ordering::Relaxed);
        Right::Denied
    };
    thread().clock.set(right as u32);
}

/// Makes the calling thread ask the kernel again before its next reading. The parent calls this
/// function after vfork, because the child used this thread's memory and may have recorded its own
/// right there.
pub fn ask_again() {
    thread().clock.set(Right::Unknown as u32);
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

/// Number of tries from which [`calibrate`] determines the maximum duration of an uninterrupted
/// try.
const FIRST_TRIES: usize = 127;

/// Number of further tries. [`calibrate`] returns the mean duration of those that were not
/// interrupted.
const TRIES: u64 = 1024;

/// Factor for the 90th percentile of the first tries' durations. A try that takes longer than the
/// product counts as interrupted. The median is not used, because it may be 0 if the counter
/// advances in long steps.
const INTERRUPTED: u64 = 4;

/// Returns the number of ticks that the timing itself adds to a call: the mean duration of many
/// uninterrupted tries with a function that does nothing. Returns 0 if the calling thread may not
/// read the counter.
///
/// The counters of some processors advance in steps of about the duration of a try. The median or
/// the minimum of all tries would then be wrong by a part of a step in every call.
pub fn calibrate() -> u64 {
    if !may_read() {
        return 0;
    }
    let mut first = [0; FIRST_TRIES];
    first.fill_with(time_nothing);
    first.sort_unstable();
    let most = INTERRUPTED * first[FIRST_TRIES * 9 / 10];
    let (mut number, mut sum) = (0, 0);
    for ticks in (0..TRIES).map(|_| time_nothing()) {
        if ticks <= most {
            number += 1;
            sum += ticks;
        }
    }
    (sum + number / 2).checked_div(number).unwrap_or(0)
}

/// Returns the ticks between two readings around a call of a function that does nothing.
fn time_nothing() -> u64 {
    extern "C" fn nothing(word: usize) -> usize {
        word
    }
    // Called through an address that the compiler does not know, like the followed functions.
    let next: extern "C" fn(usize) -> usize = core::hint::black_box(nothing);
    let before = system::fenced_ticks();
    core::hint::black_box(next(1));
    system::fenced_ticks().wrapping_sub(before)
}
