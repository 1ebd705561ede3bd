//! Repetition of an operation in several parallel threads. Operations are timed one by one, then in
//! batches.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use heapdrome_schema::Distribution;
use heapdrome_statistics::median;

use crate::times::{Times, merged};

const WARM_UP: u8 = 0;
const MEASURE: u8 = 1;
const BATCHES: u8 = 2;
const BESIDE: u8 = 3;
const STOP: u8 = 4;

/// Duration of a batch. It is long enough to make the cost of two clock readings negligible. It is
/// much shorter than a time slice, so that most batches are not interrupted.
const BATCH: Duration = Duration::from_micros(50);
/// Time after which all threads switch between the operation and its reference. A turn contains
/// many batches, and a run contains many turns.
const TURN: Duration = Duration::from_millis(2);
/// Maximum number of operations in a batch.
const LARGEST_BATCH: u64 = 1 << 14;
/// Maximum number of batches per thread that are recorded for the operation, and also for its
/// reference.
const MOST_BATCHES: usize = 1 << 17;

/// The measurements of all threads.
#[derive(Debug)]
pub struct Outcome {
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    /// Times of the operations that were timed one by one, after the warm-up.
    times: Times,
    span: Duration,
    warm_up: u64,
    batches: Batches,
}

/// Measurements of operations that were timed in batches.
#[derive(Debug)]
struct Batches {
    /// Number of operations in all batches.
    operations: u64,
    /// Time per operation in nanoseconds, one value for each batch.
    times: Vec<f64>,
    /// Time per operation of the reference in nanoseconds, one value for each batch. Empty if the
    /// operation has no reference.
    beside: Vec<f64>,
}

/// An operation that one thread repeats.
pub trait Operation<E> {
    /// Performs the operation once.
    ///
    /// # Errors
    /// When the operation fails.
    fn once(&mut self) -> Result<(), E>;

    /// Performs the operation `times` times. The caller times the whole batch, so an implementation
    /// can set up once for all of them.
    ///
    /// # Errors
    /// When the operation fails.
    fn many(&mut self, times: u64) -> Result<(), E> {
        (0..times).try_for_each(|_| self.once())
    }

    /// Performs the operation's reference `times` times, and returns the time that this took.
    /// Returns `None` if the operation has no reference.
    ///
    /// # Errors
    /// When the reference fails.
    fn beside(&mut self, _times: u64) -> Result<Option<Duration>, E> {
        Ok(None)
    }
}

impl<F: FnMut() -> Result<(), E>, E> Operation<E> for F {
    fn once(&mut self) -> Result<(), E> {
        self()
    }
}

impl Outcome {
    /// Returns the number of operations that were timed one by one.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.parts.iter().map(|part| part.times.count()).sum()
    }

    /// Returns the number of operations in the warm-up.
    #[must_use]
    pub fn warm_up_operations(&self) -> u64 {
        self.parts.iter().map(|part| part.warm_up).sum()
    }

    /// Returns the number of operations in batches.
    #[must_use]
    pub fn batch_operations(&self) -> u64 {
        self.parts.iter().map(|part| part.batches.operations).sum()
    }

    /// Returns the time per operation in nanoseconds, without the cost of the clock. It is the
    /// median over the batches of all threads.
    #[must_use]
    pub fn time_without_clock(&self) -> Option<f64> {
        self.over_batches(|batches| &batches.times)
    }

    /// Returns the time per reference operation in nanoseconds: the median over the batches of all
    /// threads.
    #[must_use]
    pub fn time_beside(&self) -> Option<f64> {
        self.over_batches(|batches| &batches.beside)
    }

    fn over_batches(&self, of: impl Fn(&Batches) -> &[f64]) -> Option<f64> {
        let all = self.parts.iter().flat_map(|part| of(&part.batches));
        median(&all.copied().collect::<Vec<f64>>())
    }

    /// Returns the duration of the longest timed operation.
    #[must_use]
    pub fn longest(&self) -> Duration {
        let all = self.parts.iter().map(|part| part.times.max());
        all.max().unwrap_or_default().into()
    }

    /// Returns the distribution of the timed operations.
    #[must_use]
    pub fn times(&self) -> Distribution {
        merged(self.parts.iter().map(|part| &part.times))
    }

    /// Returns the rate of timed operations per second. It is the sum of the threads' rates, each
    /// over the thread's own measuring time.
    #[must_use]
    pub fn rate(&self) -> f64 {
        let rate = |part: &Part| {
            part.times.count() as f64 / part.span.as_secs_f64().max(f64::MIN_POSITIVE)
        };
        self.parts.iter().map(rate).sum()
    }
}

/// Runs the operation that `make` returns in each of `threads` threads. The phases are a warm-up,
/// single timed operations for the time `measured`, and batches for half of that time. If the
/// operation has a reference, the last phase alternates between turns of the operation and turns of
/// the reference.
///
/// # Errors
/// When a thread fails. The error is that of the first failed thread in order of creation. It is
/// `None` if that thread panicked.
pub fn drive<O: Operation<E>, E: Send>(
    threads: usize,
    warm_up: Duration,
    measured: Duration,
    make: impl Fn() -> Result<O, E> + Sync,
) -> Result<Outcome, Option<E>> {
    let phase = AtomicU8::new(WARM_UP);
    let barrier = Barrier::new(threads + 1);
    let parts = std::thread::scope(|scope| {
        let body = || {
            let made = make();
            barrier.wait();
            one_thread(made?, &phase)
        };
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(body)).collect();
        barrier.wait();
        // Relaxed here and in the threads: the phase guards no other data, and the join publishes
        // the times.
        for (span, next) in [(warm_up, MEASURE), (measured, BATCHES)] {
            std::thread::sleep(span);
            phase.store(next, Ordering::Relaxed);
        }
        take_turns(&phase, measured / 2);
        phase.store(STOP, Ordering::Relaxed);
        let joined = running.into_iter().map(|thread| thread.join());
        joined
            .map(|part| part.map_err(|_| None).and_then(|part| part.map_err(Some)))
            .collect::<Result<Vec<Part>, Option<E>>>()
    })?;
    Ok(Outcome { parts })
}

/// Alternates all threads between the operation and its reference until `longest` has passed.
fn take_turns(phase: &AtomicU8, longest: Duration) {
    let begin = Instant::now();
    loop {
        for turn in [BESIDE, BATCHES] {
            std::thread::sleep(TURN);
            // Relaxed: the phase guards no other data.
            phase.store(turn, Ordering::Relaxed);
        }
        if begin.elapsed() >= longest {
            return;
        }
    }
}

fn one_thread<E>(mut operation: impl Operation<E>, phase: &AtomicU8) -> Result<Part, E> {
    let mut times = Times::new();
    let begin = Instant::now();
    let mut warm_up = 0;
    while phase.load(Ordering::Relaxed) == WARM_UP {
        operation.once()?;
        warm_up += 1;
    }
    let each = begin.elapsed().as_nanos() / u128::from(warm_up.max(1));
    let begin = Instant::now();
    while phase.load(Ordering::Relaxed) == MEASURE {
        let start = Instant::now();
        operation.once()?;
        times.record(start.elapsed());
    }
    let span = begin.elapsed();
    let fitting = u64::try_from(BATCH.as_nanos() / each.max(1)).unwrap_or(LARGEST_BATCH);
    Ok(Part {
        times,
        span,
        warm_up,
        batches: in_batches(operation, phase, fitting.clamp(1, LARGEST_BATCH))?,
    })
}

/// Times batches of the operation and, in separate turns, of its reference. Times at least one
/// batch of the operation, and of the reference if there is one.
fn in_batches<E>(
    mut operation: impl Operation<E>,
    phase: &AtomicU8,
    size: u64,
) -> Result<Batches, E> {
    let mut all = Batches {
        operations: 0,
        times: Vec::with_capacity(MOST_BATCHES),
        beside: Vec::with_capacity(MOST_BATCHES),
    };
    let mut compared = true;
    loop {
        let now = match phase.load(Ordering::Relaxed) {
            STOP if all.times.is_empty() => BATCHES,
            STOP if all.beside.is_empty() && compared => BESIDE,
            STOP => return Ok(all),
            BESIDE if !compared => BATCHES,
            now => now,
        };
        if now == BESIDE {
            let time = operation.beside(size)?;
            compared = time.is_some();
            keep(&mut all.beside, time, size);
        } else {
            let start = Instant::now();
            operation.many(size)?;
            keep(&mut all.times, Some(start.elapsed()), size);
            all.operations += size;
        }
    }
}

/// Records the time per operation of a batch of `size` operations. Discards the batch if the
/// preallocated memory is full.
fn keep(times: &mut Vec<f64>, batch: Option<Duration>, size: u64) {
    if times.len() < MOST_BATCHES {
        times.extend(batch.map(|time| time.as_nanos() as f64 / size as f64));
    }
}
