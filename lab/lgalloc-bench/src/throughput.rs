//! Taking and returning regions for a while, in several threads at once.

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use heapdrome_paging::{Counters, Holder, Report, Throughput, Variant};

use crate::failure::Failure;
use crate::regions::Region;
use crate::times::{Times, merged};

const WARM_UP: u8 = 0;
const MEASURE: u8 = 1;
const STOP: u8 = 2;

/// What threads did.
#[derive(Debug)]
pub struct Outcome {
    /// Times of operations, one part for each thread; those of the warm-up are not in it.
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    times: Times,
    span: Duration,
    warm_up: u64,
}

impl Outcome {
    /// Operations that count.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.parts.iter().map(|part| part.times.count()).sum()
    }

    /// Operations that do not.
    #[must_use]
    pub fn warm_up_operations(&self) -> u64 {
        self.parts.iter().map(|part| part.warm_up).sum()
    }

    /// The longest operation that counts.
    #[must_use]
    pub fn longest(&self) -> Duration {
        let all = self.parts.iter().map(|part| part.times.max());
        Duration::from_nanos(all.max().unwrap_or(0))
    }

    /// Operations per second over all threads, each by its own time.
    #[must_use]
    pub fn rate(&self) -> f64 {
        let rate = |part: &Part| {
            part.times.count() as f64 / part.span.as_secs_f64().max(f64::MIN_POSITIVE)
        };
        self.parts.iter().map(rate).sum()
    }
}

/// Runs what `make` gives each thread, first unmeasured and then measured.
///
/// # Errors
/// The first failure of any thread.
pub fn drive<O: FnMut() -> Result<(), E>, E: Send>(
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
        // Relaxed here and in the threads: the phase stands for itself, and joining publishes times.
        std::thread::sleep(warm_up);
        phase.store(MEASURE, Ordering::Relaxed);
        std::thread::sleep(measured);
        phase.store(STOP, Ordering::Relaxed);
        let joined = running.into_iter().map(|thread| thread.join());
        joined
            .map(|part| part.map_err(|_| None).and_then(|part| part.map_err(Some)))
            .collect::<Result<Vec<Part>, Option<E>>>()
    })?;
    Ok(Outcome { parts })
}

fn one_thread<E>(
    mut operation: impl FnMut() -> Result<(), E>,
    phase: &AtomicU8,
) -> Result<Part, E> {
    let mut times = Times::new();
    let mut warm_up = 0;
    while phase.load(Ordering::Relaxed) == WARM_UP {
        operation()?;
        warm_up += 1;
    }
    let begin = Instant::now();
    while phase.load(Ordering::Relaxed) == MEASURE {
        let start = Instant::now();
        operation()?;
        times.record(start.elapsed());
    }
    Ok(Part {
        times,
        span: begin.elapsed(),
        warm_up,
    })
}

/// Runs a variant.
pub fn run(job: &Throughput) -> Result<Report, Failure> {
    let span = |seconds: f64| {
        Duration::try_from_secs_f64(seconds)
            .map_err(|error| Failure::Instructions(format!("{seconds} seconds: {error}")))
    };
    let (warm_up, measured) = (span(job.warm_up)?, span(job.seconds)?);
    if job.threads == 0 || job.threads > 1024 {
        return Err(Failure::Instructions("threads must be 1 to 1024".into()));
    }
    let before = Counters::now();
    let outcome = variant(job.variant, job.threads, warm_up, measured)
        .map_err(|failure| failure.unwrap_or(Failure::Thread))?;
    let mut report = Report {
        figures: Counters::now().since(&before),
        ..Report::default()
    };
    let mut figure = |name: &str, value: f64| report.figures.insert(name.to_owned(), value);
    figure("ops_per_s", outcome.rate());
    figure("warm_up_ops", outcome.warm_up_operations() as f64);
    let times = merged(outcome.parts.iter().map(|part| &part.times));
    report.distributions.insert("op".to_owned(), times);
    Ok(report)
}

fn variant(
    variant: Variant,
    threads: usize,
    warm_up: Duration,
    measured: Duration,
) -> Result<Outcome, Option<Failure>> {
    let take = |holder: Holder, advice: Option<libc::c_int>, touch: bool| {
        drive(threads, warm_up, measured, move || {
            Ok::<_, Failure>(move || {
                let mut region = Region::take(holder)?;
                if let Some(advice) = advice {
                    region.advise(advice)?;
                }
                if touch {
                    region.touch();
                }
                drop(black_box(region));
                Ok::<(), Failure>(())
            })
        })
    };
    let keep = |advice: libc::c_int| {
        drive(threads, warm_up, measured, move || {
            let mut region = Region::take(Holder::Mapped)?;
            Ok(move || {
                region.advise(advice)?;
                region.touch();
                Ok::<(), Failure>(())
            })
        })
    };
    let nohuge = Some(libc::MADV_NOHUGEPAGE);
    match variant {
        Variant::Clock => drive(threads, warm_up, measured, || Ok(|| Ok(()))),
        Variant::Lgalloc => take(Holder::Lgalloc, None, false),
        Variant::LgallocTouch => take(Holder::Lgalloc, None, true),
        Variant::Sysalloc => take(Holder::Malloc, None, false),
        Variant::SysallocTouch => take(Holder::Malloc, None, true),
        Variant::SysallocNohuge => take(Holder::Malloc, nohuge, false),
        Variant::SysallocNohugeTouch => take(Holder::Malloc, nohuge, true),
        Variant::Mmap => take(Holder::Mapped, None, false),
        Variant::MmapTouch => take(Holder::Mapped, None, true),
        Variant::MmapDontneed => keep(libc::MADV_DONTNEED),
        Variant::MmapFree => keep(libc::MADV_FREE),
    }
}
