//! Times some of the recorded calls, so that a profile can show the share of processor time that
//! the program spends in the allocator.
//!
//! A call for a small block is timed with the probability 1 / [`PERIOD`], independently of its
//! thread's earlier calls. Equal distances could keep step with a loop of the program, and would
//! neglect short-lived threads. The time of a call is the difference of two readings of the
//! processor's counter, without the time that the readings take.
//!
//! Calls that request a [large](crate::large) block or free a remembered one are all timed, and
//! have sums of their own. They are rare and slow, so a sample that misses them would show too
//! little time. Calls for huge blocks may take longer than an interruption. They are timed by the
//! processor time of the thread, which passes only while the thread runs.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::calls::Call;
use crate::clock;
use crate::control;
use crate::exponential::{distance, random};
use crate::kernel;
use crate::large::{self, HUGE, LARGE};
use crate::own::{NEW, is_sandboxed, state};
use crate::ring::Timing;
use crate::slots::TIMED;
use crate::system::{fenced_ticks, ticks};
use crate::thread::{Thread, thread};

/// Mean number of recorded calls per timed call. Timing a call takes about as long as recording
/// four others.
const PERIOD: f64 = 256.0;

/// Processor time of the process when its program began, in nanoseconds.
static BEGAN: AtomicU64 = AtomicU64::new(0);

/// A timed call, as `record` of [`crate::recording_passages`] lays it out on the stack.
#[repr(C)]
pub struct TimedCall {
    pub call: Call,
    /// Time before the call: the processor's counter, or the thread's processor time in
    /// nanoseconds if the block is huge.
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

/// Decides whether a call that requests `size` bytes is timed. Returns the offset to add to the
/// call's slot: 0 if it is not timed, [`TIMED`] if it is timed, and twice that if it requests a
/// large block, whose timing this function has started.
pub extern "C" fn choose(call: &mut TimedCall, size: u64) -> usize {
    match LargeClock::for_size(size) {
        Some(clock) => {
            call.began = clock.begin_if_allowed();
            if call.began == 0 { 0 } else { 2 * TIMED }
        }
        None if is_timed() => TIMED,
        None => 0,
    }
}

/// Draws the distance to the next timed call of this thread. Returns whether to time the current
/// call.
pub extern "C" fn is_timed() -> bool {
    let thread = thread();
    let mut seed = thread.timing_seed.get();
    if seed == 0 {
        // The address distinguishes the seeds of a process's threads. The time distinguishes the
        // seeds of different processes.
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

/// Times that belong to one timed call: ticks, or nanoseconds for a huge block. The times of the
/// call and of its recording each include one reading.
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
    if span.call.max(recording).max(span.reading) >= control::interrupted() {
        add(&timing.interrupted, 1);
        return;
    }
    // The differences may be negative. If they were counted as zero, the sums would be too large.
    let time = span.call.wrapping_sub(span.reading) as i64;
    let recording = recording.wrapping_sub(span.reading) as i64;
    add(&timing.calls, 1);
    add(&timing.ticks, time as u64);
    add(&timing.squares, (time * time) as u64);
    add(&timing.recording, recording as u64);
    add(&timing.recording_squares, (recording * recording) as u64);
    note_processor_time(timing);
}

/// Records the processor time of the process now and then, because the process may end without
/// calling [`end_process`].
fn note_processor_time(timing: &Timing) {
    /// Minimum time between two readings, as a multiple of [`control::interrupted`]: about 2 ms.
    const PERIOD: u64 = 5;
    /// The processor's counter at the latest reading.
    static NOTED: AtomicU64 = AtomicU64::new(0);
    let now = ticks();
    // Relaxed: if two threads read the time, the collector takes the later one.
    if now.wrapping_sub(NOTED.load(Ordering::Relaxed)) > PERIOD * control::interrupted()
        && !is_sandboxed()
    {
        NOTED.store(now, Ordering::Relaxed);
        timing
            .latest_time
            .store(kernel::processor_time(), Ordering::Relaxed);
    }
}

fn add(sum: &AtomicU64, more: u64) {
    // Relaxed: a reader of a sum relies on no other memory that this thread has written. Additions
    // are atomic, because a signal handler may be timed as well.
    sum.fetch_add(more, Ordering::Relaxed);
}

/// Clock by which the calls for a large block are timed.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum LargeClock {
    /// The processor's counter, because reading it is cheaper.
    Ticks = 1,
    /// Processor time of the thread in nanoseconds.
    Thread = 2,
}

impl LargeClock {
    /// Returns the clock for a block of this size; `None` if it is not large.
    #[inline]
    pub fn for_size(size: u64) -> Option<Self> {
        match size {
            HUGE.. => Some(Self::Thread),
            LARGE.. => Some(Self::Ticks),
            _ => None,
        }
    }

    /// Returns whether the calling thread may read the clock.
    fn is_allowed(self) -> bool {
        match self {
            Self::Ticks => clock::may_read(),
            Self::Thread => !is_sandboxed(),
        }
    }

    /// Starts to time a call, and returns the clock's reading. If the call cannot be timed, counts
    /// it and returns 0.
    pub fn begin_if_allowed(self) -> u64 {
        if self.is_allowed() {
            return self.begin();
        }
        count_large();
        0
    }

    /// Starts to time a call, and returns the clock's reading.
    fn begin(self) -> u64 {
        thread().slept.set(0);
        self.read()
    }

    fn read(self) -> u64 {
        match self {
            Self::Ticks => fenced_ticks(),
            Self::Thread => kernel::thread_time(),
        }
    }
}

/// Runs `record`. Counts the time of the call, which began at `began` and has returned, and the
/// time of `record`. `record` records the call, and returns the address of the large block that the
/// call made; 0 if it made none. Remembers that block.
pub fn end_large(began: u64, size: u64, record: impl FnOnce() -> usize) {
    let Some(clock) = LargeClock::for_size(size) else {
        return;
    };
    let ended = clock.read();
    let reading = clock.read().wrapping_sub(ended);
    let block = record();
    note_large(
        clock,
        &Span {
            call: ended.wrapping_sub(began),
            recording: clock.read().wrapping_sub(ended),
            reading,
        },
    );
    if block != 0 {
        large::set(block, size);
    }
}

/// A free of a large block.
#[repr(C)]
pub struct LargeFree {
    began: u64,
    /// The clock: a [`LargeClock`]; 0 if the free is not timed.
    clock: u64,
}

/// Starts to time a call that frees the large block at `address`.
pub extern "C" fn begin_large_free(free: &mut LargeFree, address: usize) {
    let clock = match large::take(address) {
        true => LargeClock::Thread,
        false => LargeClock::Ticks,
    };
    (free.began, free.clock) = match clock.is_allowed() {
        true => (clock.begin(), clock as u64),
        false => (0, 0),
    };
}

/// Counts the time of a free of a large block that has returned.
pub extern "C" fn end_large_free(free: &LargeFree) {
    let clock = match free.clock {
        0 => return count_large(),
        clock if clock == LargeClock::Thread as u64 => LargeClock::Thread,
        _ => LargeClock::Ticks,
    };
    let ended = clock.read();
    let reading = clock.read().wrapping_sub(ended);
    note_large(
        clock,
        &Span {
            call: ended.wrapping_sub(free.began),
            recording: reading,
            reading,
        },
    );
}

/// Counts an untimed call for a large block.
fn count_large() {
    if let Some(timing) = of_thread(thread()) {
        add(&timing.large.calls, 1);
    }
}

/// Adds a call for a large block to the sums. Its recording includes the readings, because each
/// such call has them.
fn note_large(clock: LargeClock, span: &Span) {
    let thread = thread();
    let Some(timing) = of_thread(thread) else {
        return;
    };
    let large = &timing.large;
    add(&large.calls, 1);
    // Add two readings: the first began before the call's time, and the last one ends after
    // `recording`.
    let recording = span.recording.wrapping_add(2 * span.reading);
    let time = span.call.wrapping_sub(span.reading);
    match clock {
        LargeClock::Ticks => {
            let recording = recording.wrapping_sub(thread.slept.get());
            if span.call.max(recording) >= control::interrupted() {
                add(&large.interrupted, 1);
                return;
            }
            add(&large.ticks, time);
            add(&large.recording_ticks, recording);
        }
        LargeClock::Thread => {
            add(&large.nanoseconds, time);
            add(&large.recording_nanoseconds, recording);
        }
    }
    add(&large.timed, 1);
}

/// Records the processor time of the process at the beginning of its program. An executed program
/// begins with the processor time of the program before it.
pub fn begin_process(processor_time: u64) {
    // Relaxed: no other thread of the process runs yet.
    BEGAN.store(processor_time, Ordering::Relaxed);
}

/// Returns the processor time of the process when its program began, in nanoseconds.
pub fn began() -> u64 {
    BEGAN.load(Ordering::Relaxed)
}

/// Records the processor time of a process that is about to exit. If a process ends otherwise, only
/// the occasional readings of [`note_processor_time`] show its time.
pub fn end_process() {
    if !is_sandboxed()
        && let Some(timing) = of_thread(thread())
    {
        // Relaxed: a reader of the processor time relies on no other memory that this thread has
        // written.
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
