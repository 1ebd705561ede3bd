//! Timed reads of random pages, by one of several strategies.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use heapdrome_paging::Counters;
use heapdrome_schema::{Bytes, Holder, Order, PagingReport, Read, Strategy};

use crate::failure::Failure;
use crate::harness;
use crate::read_threads::{
    MEASURE, ReadThread, SETTLE, STOP, Sheet, Stage, batches, by_reader, prefetch, singles,
};
use crate::regions::{PAGE, REGION, WorkingSet, regions_for};
use crate::settle;
use crate::times::{Times, merged};

/// Maximum accepted difference between the major faults per read and the share of pages that are
/// not resident. Sampling noise is allowed in addition.
const TOLERANCE: f64 = 0.01;

/// Runs the job. `lock` pins the current memory of the process, if the system allows it.
pub fn run(job: &Read, lock: impl FnOnce() -> bool) -> Result<PagingReport, Failure> {
    check(job)?;
    // Create the readers before the lock, so that the lock covers the memory for their records.
    let mut threads = read_threads(job);
    let mut report = harness::report(lock());
    let set = match job.strategy {
        Strategy::Reader { .. } => WorkingSet::in_one_vector(job.total, job.seed)?,
        _ => WorkingSet::make(job.holder, job.total, job.seed)?,
    };
    harness::advise(&set, job.strategy)?;
    let stage = Stage {
        set: &set,
        phase: AtomicU8::new(SETTLE),
    };
    let watched = perform(&stage, &mut threads, job)?;
    tell(&mut report, job, watched, &threads);
    Ok(report)
}

/// Returns the state of each reader, with its own sequence of draws.
fn read_threads(job: &Read) -> Vec<ReadThread> {
    let pages = regions_for(job.total) * (REGION / PAGE);
    let thread = |number: usize| {
        let seed = job.seed.wrapping_add((number as u64 + 1) << 48);
        ReadThread::new(job.order, pages, seed)
    };
    (0..job.threads).map(thread).collect()
}

/// Adds the measurements to the report.
fn tell(report: &mut PagingReport, job: &Read, watched: Watched, threads: &[ReadThread]) {
    let all = |of: fn(&Sheet) -> &Times| merged(threads.iter().map(|thread| of(&thread.sheet)));
    let rate = |thread: &ReadThread| {
        thread.sheet.reads.count() as f64 / thread.sheet.span.as_secs_f64().max(f64::MIN_POSITIVE)
    };
    let reads = all(|sheet| &sheet.reads);
    report.figures.extend(watched.counters);
    let faults = report.figures.get("majflt").copied().unwrap_or(0.0);
    let per_read = faults / (reads.count().max(1)) as f64;
    let figures = [
        ("reads_per_s", threads.iter().map(rate).sum::<f64>()),
        ("resident_share", watched.resident),
        ("major_faults_per_read", per_read),
    ];
    report
        .figures
        .extend(figures.map(|(name, value)| (name.to_owned(), value)));
    if faults_are_known(job) {
        report.rejected = crooked(per_read, watched.resident, reads.count());
    }
    if !watched.settled {
        let told = "write-back had not settled when measuring began";
        report.remarks.push(told.to_owned());
    }
    let mut distribution = |name: &str, times| report.distributions.insert(name.to_owned(), times);
    distribution("read", reads);
    if matches!(job.strategy, Strategy::Batch { .. }) {
        distribution("batch_with_advice", all(|sheet| &sheet.with_advice));
        distribution("batch_without_advice", all(|sheet| &sheet.without_advice));
    }
}

/// Returns whether the number of major faults is predictable, which requires independent draws
/// without prefetching. Then each page is equally likely to be read, and the read of a page that is
/// not resident causes a major fault. In a shuffled order the number is unpredictable, because the
/// resident pages are those that were read most recently, and one pass does not read a page twice.
fn faults_are_known(job: &Read) -> bool {
    job.order == Order::Uniform && job.strategy.leaves_faults_to_the_reader()
}

fn check(job: &Read) -> Result<(), Failure> {
    let wrong = match job.strategy {
        Strategy::Batch { pages } => pages == 0 || pages > 1 << 20,
        Strategy::Reader { pages } => {
            pages == 0 || pages > 1 << 20 || job.holder != Holder::Lgalloc
        }
        Strategy::Prefetch { ahead } | Strategy::RandomPrefetch { ahead } => ahead == 0,
        Strategy::Baseline | Strategy::Random | Strategy::Sequential => false,
    };
    if wrong || job.threads == 0 || job.threads > 1024 || job.total > Bytes(1 << 46) {
        return Err(Failure::Instructions("a number is out of range".into()));
    }
    Ok(())
}

/// Returns the reason to reject a run, if its faults do not match its residency. Such a mismatch
/// means that pages were not drawn as specified, or that something other than the reads moved
/// pages.
fn crooked(per_read: f64, resident: f64, reads: u64) -> Option<String> {
    let expected = 1.0 - resident;
    // Two standard deviations of a share observed in `reads` draws.
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

/// Runs all threads through warm-up and measuring. Returns the counters and the resident share of
/// the measured phase.
fn perform(stage: &Stage<'_>, readers: &mut [ReadThread], job: &Read) -> Result<Watched, Failure> {
    let ahead = match job.strategy {
        Strategy::Prefetch { ahead } | Strategy::RandomPrefetch { ahead } => Some(ahead as u64),
        _ => None,
    };
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        let mut positions = Vec::new();
        for reader in readers.iter_mut() {
            let ReadThread {
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
                Strategy::Reader { pages } => by_reader(stage, draws, position, sheet, pages),
                _ => singles(stage, draws, position, sheet),
            }));
        }
        // Relaxed: a slightly old count suffices.
        let read = |one: &&AtomicU64| one.load(Ordering::Relaxed);
        let watched = watch(stage, job, || positions.iter().map(read).sum());
        // Relaxed: the phase guards no other data, and joining publishes the records.
        stage.phase.store(STOP, Ordering::Relaxed);
        for thread in threads {
            thread.join().map_err(|_| Failure::Thread)??;
        }
        watched
    })
}

fn watch(stage: &Stage<'_>, job: &Read, reads: impl Fn() -> u64) -> Result<Watched, Failure> {
    let settled = settle::wait(job.warm_up, reads);
    let first = stage.set.resident_share()?;
    let before = Counters::now();
    // Relaxed: the phase guards no other data.
    stage.phase.store(MEASURE, Ordering::Relaxed);
    std::thread::sleep(job.seconds);
    stage.phase.store(STOP, Ordering::Relaxed);
    let counters = Counters::now().since(&before);
    let last = stage.set.resident_share()?;
    Ok(Watched {
        counters,
        resident: (first + last) / 2.0,
        settled,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn job(strategy: Strategy, threads: usize) -> Read {
        Read {
            total: Bytes::from_mib(8),
            threads,
            strategy,
            holder: Holder::Mapped,
            order: Order::Uniform,
            seed: 5,
            warm_up: Duration::from_millis(300),
            seconds: Duration::from_millis(200),
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

    /// lgalloc's reader requires a vector of lgalloc. A job with any other holder is refused.
    #[test]
    fn the_reader_of_lgalloc_reads_what_was_written() {
        let mut job = job(Strategy::Reader { pages: 8 }, 2);
        assert!(matches!(run(&job, || false), Err(Failure::Instructions(_))));
        job.holder = Holder::Lgalloc;
        let report = run(&job, || false).expect("read");
        assert!(report.distributions["read"].count() > 0);
        assert_eq!(report.rejected, None);
    }

    #[test]
    fn a_run_whose_faults_do_not_match_is_rejected() {
        assert_eq!(crooked(0.50, 0.5, 1_000_000), None);
        assert!(crooked(0.53, 0.5, 1_000_000).is_some());
        assert!(crooked(0.0, 0.5, 1_000_000).is_some());
        // Two hundred draws are too few to reject the run.
        assert_eq!(crooked(0.53, 0.5, 200), None);
    }

    #[test]
    fn faults_are_known_of_independent_draws_alone() {
        let known = |strategy, order| {
            faults_are_known(&Read {
                order,
                ..job(strategy, 1)
            })
        };
        assert!(known(Strategy::Baseline, Order::Uniform));
        assert!(!known(Strategy::Baseline, Order::Permutation));
        assert!(!known(Strategy::Batch { pages: 8 }, Order::Uniform));
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
    }
}
