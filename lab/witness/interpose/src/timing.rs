//! Times some of the recorded calls, so that a profile can show the share of processor time that
//! the program spends in the allocator.
//!
//! Each call is timed with the probability 1 / [`PERIOD`], independently of its thread's earlier
//! calls. Equal distances could keep step with a loop of the program, and would neglect short-lived
//! threads. The time of a call is the difference of two readings of the processor's counter,
//! without the time that the readings take.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::calls::Call;
use crate::clock;
use crate::exponential::{distance, random};
use crate::kernel;
use crate::own::{NEW, is_sandboxed, state};
use crate::ring::Timing;
use crate::system::fenced_ticks;
use crate::thread::{Thread, thread};

/// Mean number of recorded calls per timed call. Timing a call takes about as long as recording
/// four others.
const PERIOD: f64 = 256.0;

/// Number of ticks from which a timed call counts as interrupted: about 0.4 ms at 2.6 GHz. Most
/// longer calls were interrupted, so they are left out.
const INTERRUPTED: u64 = 1 << 20;

/// A timed call, as [`record`](crate::recording_passages::record) lays it out on the stack.
#[repr(C)]
pub struct TimedCall {
    pub call: Call,
    /// The processor's counter before the call.
    pub began: u64,
}

/// Readings of the processor's counter around the recording of a free that is timed.
#[repr(C)]
pub struct TimedFree {
    /// Counter before the free was recorded.
    began: u64,
    /// Counter after the free was recorded, and before the allocator was called.
    recorded: u64,
}

/// Draws the distance to the next timed call of this thread. Returns whether to time the current
/// call.
pub extern "C" fn is_timed() -> bool {
    let thread = thread();
    let mut seed = thread.timing_seed.get();
    if seed == 0 {
        // Threads of one process differ by address, and processes by time.
        seed = clock::clock() ^ (&raw const *thread as u64).rotate_left(32);
        // The first distance of a thread begins before its first call. The current call is that
        // first call, so it counts towards the distance.
        if let Some(left) = calls_before_next(&mut seed).checked_sub(1) {
            thread.until_timed.set(left);
            thread.timing_seed.set(seed | 1);
            return false;
        }
    }
    thread.until_timed.set(calls_before_next(&mut seed));
    thread.timing_seed.set(seed | 1);
    thread.slept.set(0);
    clock::may_read()
}

/// Draws the number of calls before the next timed call. It is 0 with the probability 1 /
/// [`PERIOD`]. The whole part of an exponential distance with the mean m is 0 with the probability
/// 1 - exp(-1 / m). This equals 1 / (m + 0.5) with a relative error of about a millionth.
fn calls_before_next(seed: &mut u64) -> u32 {
    distance(random(seed), PERIOD - 0.5) as u32
}

/// Counts the current call towards the next timed one. Returns whether to time it.
pub fn count() -> bool {
    let thread = thread();
    let (left, is_over) = thread.until_timed.get().overflowing_sub(1);
    thread.until_timed.set(left);
    is_over && is_timed()
}

/// Runs `record`, which records a call that has returned. Counts the time of the call, which began
/// at `began`, and the time of `record`.
pub fn end<T>(began: u64, record: impl FnOnce() -> T) -> T {
    let (ended, reading) = end_of_call();
    let done = record();
    let recorded = fenced_ticks();
    note(&Span {
        call: ended.wrapping_sub(began),
        recording: recorded.wrapping_sub(ended).wrapping_sub(reading),
        reading,
    });
    done
}

/// Counts the time of a free that has returned.
pub extern "C" fn end_free(free: &TimedFree) {
    let (ended, reading) = end_of_call();
    note(&Span {
        call: ended.wrapping_sub(free.recorded),
        recording: free.recorded.wrapping_sub(free.began),
        reading,
    });
}

/// Returns the processor's counter, and the ticks that one more reading takes. That time is
/// measured at each timed call, because it changes with the load of the machine.
#[inline(always)]
fn end_of_call() -> (u64, u64) {
    let ended = fenced_ticks();
    (ended, fenced_ticks().wrapping_sub(ended))
}

/// Ticks of a timed call. The ticks of the call and of its recording each include one reading.
struct Span {
    call: u64,
    recording: u64,
    reading: u64,
}

/// Adds a call to the sums.
fn note(span: &Span) {
    let thread = thread();
    let Some(timing) = of_thread(thread) else {
        return;
    };
    // Exclude the time for which the thread slept, because the processor time of the process does
    // not include it.
    let recording = span.recording.wrapping_sub(thread.slept.get());
    // Relaxed: the collector reads the sums after the process has ended. Additions are atomic,
    // because a signal handler may be timed as well.
    let add = |sum: &AtomicU64, more: u64| sum.fetch_add(more, Ordering::Relaxed);
    if span.call.max(recording).max(span.reading) >= INTERRUPTED {
        add(&timing.interrupted, 1);
        return;
    }
    // The difference may be negative. If it were counted as zero, the sum would be too large.
    let time = span.call.wrapping_sub(span.reading) as i64;
    add(&timing.calls, 1);
    add(&timing.ticks, time as u64);
    add(&timing.squares, (time * time) as u64);
    add(&timing.recording, recording.wrapping_sub(span.reading));
}

/// Records the processor time of a process that is about to exit. If a process ends otherwise, only
/// the collector's occasional readings show its time.
pub fn end_process() {
    if !is_sandboxed()
        && let Some(timing) = of_thread(thread())
    {
        // Relaxed: the collector reads the time after the process has ended.
        timing
            .processor_time
            .store(kernel::processor_time(), Ordering::Relaxed);
    }
}

fn of_thread(thread: &Thread) -> Option<&'static Timing> {
    if state() == NEW {
        return None;
    }
    // SAFETY: a thread's ring stays mapped until the process ends or executes.
    unsafe { thread.ring.get().as_ref() }.map(|ring| &ring.timing)
}
