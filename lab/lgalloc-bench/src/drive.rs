//! An operation done for a while, in several threads at once: timed one by one, and in batches.

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

/// How long a batch should take: so much longer than two readings of the clock that these do not
/// count, and so much shorter than a time slice that most batches are not interrupted.
const BATCH: Duration = Duration::from_micros(50);
/// How long all threads do the same, the operation or what it is compared with: many batches, and
/// many such turns in each run.
const TURN: Duration = Duration::from_millis(2);
/// Operations in a batch, at the most.
const LARGEST_BATCH: u64 = 1 << 14;
/// Batches of one thread that are remembered.
const MOST_BATCHES: usize = 1 << 17;

/// What threads did.
#[derive(Debug)]
pub struct Outcome {
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    /// Times of operations; those of the warm-up are not in it.
    times: Times,
    span: Duration,
    warm_up: u64,
    batches: Batches,
}

/// Operations that were not timed one by one.
#[derive(Debug)]
struct Batches {
    /// Operations in all.
    operations: u64,
    /// Nanoseconds per operation of each.
    times: Vec<f64>,
    /// Nanoseconds per operation of the reference, if the operation has one.
    beside: Vec<f64>,
}

/// What one thread does again and again.
pub trait Operation<E> {
    /// Does it once.
    ///
    /// # Errors
    /// When it cannot be done.
    fn once(&mut self) -> Result<(), E>;

    /// Does it so many times, timed as a whole: what goes on around it can then be done once for
    /// all.
    ///
    /// # Errors
    /// When it cannot be done.
    fn many(&mut self, times: u64) -> Result<(), E> {
        (0..times).try_for_each(|_| self.once())
    }

    /// Does so many times what the operation is compared with, and returns how long that took;
    /// `None` if there is no such thing.
    ///
    /// # Errors
    /// When it cannot be done.
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
    /// Operations that were timed.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.parts.iter().map(|part| part.times.count()).sum()
    }

    /// Operations that do not count.
    #[must_use]
    pub fn warm_up_operations(&self) -> u64 {
        self.parts.iter().map(|part| part.warm_up).sum()
    }

    /// Operations in batches.
    #[must_use]
    pub fn batch_operations(&self) -> u64 {
        self.parts.iter().map(|part| part.batches.operations).sum()
    }

    /// Nanoseconds of one operation without the clock: the median over the batches of all threads.
    #[must_use]
    pub fn time_without_clock(&self) -> Option<f64> {
        self.over_batches(|batches| &batches.times)
    }

    /// Nanoseconds of what one operation is compared with: the median over the batches of all
    /// threads.
    #[must_use]
    pub fn time_beside(&self) -> Option<f64> {
        self.over_batches(|batches| &batches.beside)
    }

    fn over_batches(&self, of: impl Fn(&Batches) -> &[f64]) -> Option<f64> {
        let all = self.parts.iter().flat_map(|part| of(&part.batches));
        median(&all.copied().collect::<Vec<f64>>())
    }

    /// The longest operation that was timed.
    #[must_use]
    pub fn longest(&self) -> Duration {
        let all = self.parts.iter().map(|part| part.times.max());
        all.max().unwrap_or_default().into()
    }

    /// Times of operations that were timed.
    #[must_use]
    pub fn times(&self) -> Distribution {
        merged(self.parts.iter().map(|part| &part.times))
    }

    /// Timed operations per second over all threads, each by its own time.
    #[must_use]
    pub fn rate(&self) -> f64 {
        let rate = |part: &Part| {
            part.times.count() as f64 / part.span.as_secs_f64().max(f64::MIN_POSITIVE)
        };
        self.parts.iter().map(rate).sum()
    }
}

/// Runs what `make` gives each thread: first unmeasured, then each operation timed, then, for half
/// as long, in batches that are timed as a whole; where there is something that the operation is
/// compared with, all threads do batches of that in every other turn.
///
/// # Errors
/// The first failure of any thread.
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
        // Relaxed here and in the threads: the phase stands for itself, and joining publishes
        // times.
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

/// Lets all threads do what the operation is compared with, and then the operation again, until the
/// time is over.
fn take_turns(phase: &AtomicU8, longest: Duration) {
    let begin = Instant::now();
    loop {
        for turn in [BESIDE, BATCHES] {
            std::thread::sleep(TURN);
            // Relaxed: the phase stands for itself.
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

/// Batches of the operation and, in turns of their own, of what it is compared with; one of each at
/// the least.
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

/// Adds the time of one operation of a batch of this size, while there is room.
fn keep(times: &mut Vec<f64>, batch: Option<Duration>, size: u64) {
    if times.len() < MOST_BATCHES {
        times.extend(batch.map(|time| time.as_nanos() as f64 / size as f64));
    }
}
