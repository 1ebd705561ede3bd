//! Reads of random pages, each timed, by one of several strategies.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use heapdrome_paging::{Counters, Read, Report, Strategy};

use crate::draws::Draws;
use crate::failure::Failure;
use crate::harness;
use crate::regions::WorkingSet;
use crate::settle;
use crate::times::{Times, merged};

const SETTLE: u8 = 0;
const MEASURE: u8 = 1;
const STOP: u8 = 2;

/// For how long a prefetching thread sleeps that is as far ahead as it should be. One that spins
/// takes a core from the readers.
const NAP: Duration = Duration::from_micros(50);

/// Major faults per read may differ by so much from the share of pages that are not resident.
const TOLERANCE: f64 = 0.01;

/// What all threads see.
struct Stage<'a> {
    set: &'a WorkingSet,
    phase: AtomicU8,
}

/// One reader, with memory for all that it records.
struct Reader {
    draws: Draws,
    /// Reads that it has done.
    position: AtomicU64,
    sheet: Sheet,
}

/// What a reader records.
struct Sheet {
    reads: Times,
    with_advice: Times,
    without_advice: Times,
    span: Duration,
}

impl Reader {
    fn new(job: &Read, number: usize, pages: usize) -> Self {
        let seed = job.seed.wrapping_add((number as u64 + 1) << 48);
        Self {
            draws: Draws::new(job.order, pages, seed),
            position: AtomicU64::new(0),
            sheet: Sheet {
                reads: Times::new(),
                with_advice: Times::new(),
                without_advice: Times::new(),
                span: Duration::ZERO,
            },
        }
    }
}

/// Runs the job. `lock` keeps what the process has at that moment from being swapped, if it can.
pub fn run(job: &Read, lock: impl FnOnce() -> bool) -> Result<Report, Failure> {
    check(job)?;
    let pages_wanted = (job.total as usize).div_ceil(crate::regions::REGION).max(1)
        * (crate::regions::REGION / crate::regions::PAGE);
    let mut readers: Vec<Reader> = (0..job.threads)
        .map(|number| Reader::new(job, number, pages_wanted))
        .collect();
    let mut report = harness::report(lock());
    let set = WorkingSet::make(job.holder, job.total, job.seed)?;
    harness::advise(&set, job.strategy)?;
    let stage = Stage {
        set: &set,
        phase: AtomicU8::new(SETTLE),
    };
    let watched = perform(&stage, &mut readers, job)?;
    let reads = merged(readers.iter().map(|reader| &reader.sheet.reads));
    let rate = |reader: &Reader| {
        reader.sheet.reads.count() as f64 / reader.sheet.span.as_secs_f64().max(f64::MIN_POSITIVE)
    };
    report.figures.extend(watched.counters);
    let faults = report.figures.get("majflt").copied().unwrap_or(0.0);
    let per_read = faults / (reads.count().max(1)) as f64;
    let figures = [
        ("reads_per_s", readers.iter().map(rate).sum::<f64>()),
        ("resident_share", watched.resident),
        ("major_faults_per_read", per_read),
    ];
    report
        .figures
        .extend(figures.map(|(name, value)| (name.to_owned(), value)));
    if job.strategy.leaves_faults_to_the_reader() {
        report.rejected = crooked(per_read, watched.resident, reads.count());
    }
    if !watched.settled {
        report
            .remarks
            .push("write-back had not settled when measuring began".to_owned());
    }
    report.distributions.insert("read".to_owned(), reads);
    if matches!(job.strategy, Strategy::Batch { .. }) {
        let with = merged(readers.iter().map(|reader| &reader.sheet.with_advice));
        let without = merged(readers.iter().map(|reader| &reader.sheet.without_advice));
        report
            .distributions
            .insert("batch_with_advice".to_owned(), with);
        report
            .distributions
            .insert("batch_without_advice".to_owned(), without);
    }
    Ok(report)
}

fn check(job: &Read) -> Result<(), Failure> {
    let sane = |seconds: f64| (0.0..=86_400.0).contains(&seconds);
    let wrong = match job.strategy {
        Strategy::Batch { pages } => pages == 0 || pages > 1 << 20,
        Strategy::Prefetch { ahead } | Strategy::RandomPrefetch { ahead } => ahead == 0,
        Strategy::Baseline | Strategy::Random | Strategy::Sequential => false,
    };
    if wrong || job.threads == 0 || job.threads > 1024 || job.total > 1 << 46 {
        return Err(Failure::Instructions("a number is out of range".into()));
    }
    if !sane(job.seconds) || !sane(job.warm_up) {
        return Err(Failure::Instructions("seconds are out of range".into()));
    }
    Ok(())
}

/// Why a run must not count: pages were not drawn as they should, or something else than reads moved
/// them.
fn crooked(per_read: f64, resident: f64, reads: u64) -> Option<String> {
    let expected = 1.0 - resident;
    // Two standard deviations of a share that is counted in so many draws.
    let noise = 2.0 * (expected * resident / reads.max(1) as f64).sqrt();
    let off = (per_read - expected).abs();
    (off > TOLERANCE + noise).then(|| {
        format!(
            "{per_read:.3} major faults per read, where {expected:.3} of the pages were not resident"
        )
    })
}

struct Watched {
    counters: std::collections::BTreeMap<String, f64>,
    resident: f64,
    settled: bool,
}

/// Lets all threads run, through warm-up and measuring.
fn perform(stage: &Stage<'_>, readers: &mut [Reader], job: &Read) -> Result<Watched, Failure> {
    let ahead = match job.strategy {
        Strategy::Prefetch { ahead } | Strategy::RandomPrefetch { ahead } => Some(ahead as u64),
        _ => None,
    };
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        let mut positions = Vec::new();
        for reader in readers.iter_mut() {
            let Reader {
                draws,
                position,
                sheet,
            } = reader;
            let position: &AtomicU64 = position;
            positions.push(position);
            if let Some(ahead) = ahead {
                let same = draws.clone();
                threads.push(scope.spawn(move || prefetch(stage, same, position, ahead)));
            }
            threads.push(scope.spawn(move || match job.strategy {
                Strategy::Batch { pages } => batches(stage, draws, position, sheet, pages),
                _ => singles(stage, draws, position, sheet),
            }));
        }
        let watched = watch(stage, job, || {
            // Relaxed: a moment's delay does not matter.
            positions
                .iter()
                .map(|one| one.load(Ordering::Relaxed))
                .sum()
        });
        // Relaxed: the phase stands for itself, and joining publishes what was recorded.
        stage.phase.store(STOP, Ordering::Relaxed);
        for thread in threads {
            thread.join().map_err(|_| Failure::Thread)??;
        }
        watched
    })
}

fn watch(stage: &Stage<'_>, job: &Read, reads: impl Fn() -> u64) -> Result<Watched, Failure> {
    let settled = settle::wait(Duration::from_secs_f64(job.warm_up), reads);
    let first = stage.set.resident_share()?;
    let before = Counters::now();
    // Relaxed: the phase stands for itself.
    stage.phase.store(MEASURE, Ordering::Relaxed);
    std::thread::sleep(Duration::from_secs_f64(job.seconds));
    stage.phase.store(STOP, Ordering::Relaxed);
    let counters = Counters::now().since(&before);
    let last = stage.set.resident_share()?;
    Ok(Watched {
        counters,
        resident: (first + last) / 2.0,
        settled,
    })
}

/// Whether there is more to do, and whether it counts.
fn now(stage: &Stage<'_>) -> Option<bool> {
    // Relaxed: the phase stands for itself.
    match stage.phase.load(Ordering::Relaxed) {
        SETTLE => Some(false),
        MEASURE => Some(true),
        _ => None,
    }
}

fn timed_read(stage: &Stage<'_>, page: usize) -> Result<Duration, Failure> {
    let start = Instant::now();
    let found = stage.set.read(page);
    let time = start.elapsed();
    match found == stage.set.tag(page) {
        true => Ok(time),
        false => Err(Failure::Contents(page)),
    }
}

fn singles(
    stage: &Stage<'_>,
    draws: &mut Draws,
    position: &AtomicU64,
    sheet: &mut Sheet,
) -> Result<(), Failure> {
    let mut begin = None;
    while let Some(counts) = now(stage) {
        if counts && begin.is_none() {
            begin = Some(Instant::now());
        }
        let time = timed_read(stage, draws.draw())?;
        if counts {
            sheet.reads.record(time);
        }
        // Relaxed: the prefetching thread only needs to know about where the reader is.
        position.fetch_add(1, Ordering::Relaxed);
    }
    sheet.span = begin.map_or(Duration::ZERO, |begin| begin.elapsed());
    Ok(())
}

fn batches(
    stage: &Stage<'_>,
    draws: &mut Draws,
    position: &AtomicU64,
    sheet: &mut Sheet,
    pages: usize,
) -> Result<(), Failure> {
    let mut batch = Vec::with_capacity(pages);
    let mut begin = None;
    while let Some(counts) = now(stage) {
        if counts && begin.is_none() {
            begin = Some(Instant::now());
        }
        batch.clear();
        batch.extend((0..pages).map(|_| draws.draw()));
        let start = Instant::now();
        for page in &batch {
            stage.set.will_need(*page)?;
        }
        let asked = start.elapsed();
        for page in &batch {
            let time = timed_read(stage, *page)?;
            if counts {
                sheet.reads.record(time);
            }
        }
        let whole = start.elapsed();
        if counts {
            sheet.with_advice.record(whole);
            sheet.without_advice.record(whole - asked);
        }
        // Relaxed: read by the watcher only, who needs no more than about where the reader is.
        position.fetch_add(pages as u64, Ordering::Relaxed);
    }
    sheet.span = begin.map_or(Duration::ZERO, |begin| begin.elapsed());
    Ok(())
}

/// Asks for pages before the reader draws them, by drawing the same sequence.
fn prefetch(
    stage: &Stage<'_>,
    mut draws: Draws,
    position: &AtomicU64,
    ahead: u64,
) -> Result<(), Failure> {
    let mut drawn = 0_u64;
    while now(stage).is_some() {
        // Relaxed: it may be a little behind.
        let read = position.load(Ordering::Relaxed);
        if drawn >= read.saturating_add(ahead) {
            std::thread::sleep(NAP);
            continue;
        }
        let page = draws.draw();
        drawn += 1;
        // What the reader has already passed need not be asked for.
        if drawn > read {
            stage.set.will_need(page)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapdrome_paging::{Holder, Order};

    fn job(strategy: Strategy, threads: usize) -> Read {
        Read {
            total: 8 << 20,
            threads,
            strategy,
            holder: Holder::Mapped,
            order: Order::Uniform,
            seed: 5,
            warm_up: 0.3,
            seconds: 0.2,
        }
    }

    #[test]
    fn every_strategy_reads_what_was_written() {
        for strategy in [
            Strategy::Baseline,
            Strategy::Random,
            Strategy::Sequential,
            Strategy::Prefetch { ahead: 32 },
            Strategy::Batch { pages: 8 },
            Strategy::RandomPrefetch { ahead: 128 },
        ] {
            let report = run(&job(strategy, 2), || false).expect("read");
            assert!(report.figures["reads_per_s"] > 0.0, "{strategy:?}");
            assert!(report.distributions["read"].count() > 0, "{strategy:?}");
            let batches = report.distributions.get("batch_with_advice");
            assert_eq!(
                batches.is_some(),
                matches!(strategy, Strategy::Batch { .. })
            );
        }
    }

    /// A page that was changed behind the reader's back must not pass for a fast read.
    #[test]
    fn a_page_with_other_contents_ends_the_run() {
        let set = WorkingSet::make(Holder::Mapped, 2 << 20, 5).expect("memory");
        set.regions()[0]
            .advise(libc::MADV_DONTNEED)
            .expect("advice");
        let stage = Stage {
            set: &set,
            phase: AtomicU8::new(MEASURE),
        };
        let mut reader = Reader::new(&job(Strategy::Baseline, 1), 0, set.pages());
        let ended = singles(
            &stage,
            &mut reader.draws,
            &reader.position,
            &mut reader.sheet,
        );
        assert!(matches!(ended, Err(Failure::Contents(_))));
    }

    #[test]
    fn a_run_whose_faults_do_not_match_is_rejected() {
        assert_eq!(crooked(0.50, 0.5, 1_000_000), None);
        assert!(crooked(0.53, 0.5, 1_000_000).is_some());
        assert!(crooked(0.0, 0.5, 1_000_000).is_some());
        // Two hundred draws tell less.
        assert_eq!(crooked(0.53, 0.5, 200), None);
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        for strategy in [
            Strategy::Batch { pages: 0 },
            Strategy::Prefetch { ahead: 0 },
        ] {
            assert!(matches!(
                run(&job(strategy, 1), || false),
                Err(Failure::Instructions(_))
            ));
        }
        assert!(matches!(
            run(&job(Strategy::Baseline, 0), || false),
            Err(Failure::Instructions(_))
        ));
        let mut forever = job(Strategy::Baseline, 1);
        forever.seconds = f64::INFINITY;
        assert!(matches!(
            run(&forever, || false),
            Err(Failure::Instructions(_))
        ));
    }
}
