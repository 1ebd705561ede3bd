//! Times some of the recorded calls, so that a profile can show the share of processor time that
//! the program spends in the allocator.
//!
//! Of each thread, one call in [`PERIOD`] on average is timed, at random distances: equal ones
//! could keep step with a loop of the program. The calls' own time is that between two readings of
//! the processor's counter, minus the time that a reading takes.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::calls::Call;
use crate::clock;
use crate::exponential::random;
use crate::own::{NEW, state};
use crate::ring::Timing;
use crate::system::fenced_ticks;
use crate::thread::{Thread, thread};

/// Mean number of recorded calls of a thread for each one that is timed. To time a call takes about
/// as long as to record four others.
const PERIOD: u32 = 256;

/// Calls that take longer are left out, because most of them were interrupted by another thread:
/// about 0.4 ms at 2.6 GHz.
const INTERRUPTED: u64 = 1 << 20;

/// A recorded call, as [`record`](crate::recording_passages::record) lays it out on the stack if
/// the call is timed.
#[repr(C)]
pub struct TimedCall {
    pub call: Call,
    /// The processor's counter before the call.
    pub began: u64,
}

/// Readings of the processor's counter around the recording of a free that is timed.
#[repr(C)]
pub struct TimedFree {
    /// Before the free was recorded.
    began: u64,
    /// After it was recorded, and before the allocator was called.
    recorded: u64,
}

/// Draws the next call of this thread to time. Returns whether to time the current one.
pub extern "C" fn is_timed() -> bool {
    let thread = thread();
    let mut seed = thread.timing_seed.get();
    let is_new = seed == 0;
    if is_new {
        // Threads of one process differ by place, and processes by time.
        seed = clock::clock() ^ (&raw const *thread as u64).rotate_left(32);
    }
    let distance = random(&mut seed) as u32 % (2 * PERIOD - 1);
    thread.timing_seed.set(seed | 1);
    thread.until_timed.set(distance);
    !is_new && clock::may_read()
}

/// Counts the current call towards the next one to time. Returns whether to time it.
pub fn count() -> bool {
    let thread = thread();
    let (left, is_over) = thread.until_timed.get().overflowing_sub(1);
    thread.until_timed.set(left);
    is_over && is_timed()
}

/// Runs `record`, which records a call that has returned, and counts the time of both. The call
/// began at `began`.
pub fn end<T>(began: u64, record: impl FnOnce() -> T) -> T {
    let ended = fenced_ticks();
    let done = record();
    note(began, ended, fenced_ticks().wrapping_sub(ended));
    done
}

/// Counts the time of a free that has returned.
pub extern "C" fn end_free(free: &TimedFree) {
    let ended = fenced_ticks();
    note(free.recorded, ended, free.recorded.wrapping_sub(free.began));
}

/// Counts a call, and the ticks that its recording took.
fn note(began: u64, ended: u64, recording: u64) {
    let Some(timing) = of_thread(thread()) else {
        return;
    };
    // Relaxed: the collector reads the sums after the process has ended. Additions are atomic
    // because a signal handler may be timed, too.
    let add = |sum: &AtomicU64, more: u64| sum.fetch_add(more, Ordering::Relaxed);
    let (ticks, own) = (ended.wrapping_sub(began), reading());
    if ticks.max(recording) >= INTERRUPTED {
        add(&timing.interrupted, 1);
        return;
    }
    // Less than a reading takes is possible. Without negative times the sum would be too large.
    let time = ticks.wrapping_sub(own) as i64;
    add(&timing.calls, 1);
    add(&timing.ticks, time as u64);
    add(&timing.squares, (time * time) as u64);
    add(&timing.recording, recording.wrapping_sub(own));
}

fn of_thread(thread: &Thread) -> Option<&'static Timing> {
    if state() == NEW {
        return None;
    }
    // SAFETY: a thread's ring stays mapped until the process ends or executes.
    unsafe { thread.ring.get().as_ref() }.map(|ring| &ring.timing)
}

/// Returns the ticks that the two readings around a call take; found on first use.
fn reading() -> u64 {
    static KNOWN: AtomicU64 = AtomicU64::new(0);
    // Relaxed: threads that find it at the same time find about the same.
    match KNOWN.load(Ordering::Relaxed) {
        0 => {
            let found = clock::calibrate();
            KNOWN.store(found, Ordering::Relaxed);
            found
        }
        known => known,
    }
}
