//! Reuse of regions from a pool whose memory has been swapped out.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use heapdrome_paging::Counters;
use heapdrome_schema::{Bytes, Distribution, Holder, PagingReport, Recycle};

use crate::failure::Failure;
use crate::harness;
use crate::regions::{REGION, Region, WorkingSet};
use crate::times::{Times, merged};

/// Maximum number of warm-up uses of the hot region in each thread. They are not measured.
const WARM_UP: usize = 100;
/// Pause that exceeds the time during which lgalloc assumes that a free region is resident.
const REST: Duration = Duration::from_millis(150);

/// Pool from which regions are taken and to which they return.
struct Pool {
    holder: Holder,
    /// Free mappings. Only the holder `Mapped` uses this list, because it never unmaps a region.
    free: Vec<Region>,
}

impl Pool {
    fn take(&mut self) -> Result<Region, Failure> {
        match self.free.pop() {
            Some(region) => Ok(region),
            None => Region::take(self.holder),
        }
    }

    /// Splits off a pool for one thread. Moves one free mapping to the new pool, if there is one.
    fn split(&mut self) -> Self {
        Self {
            holder: self.holder,
            free: self.free.pop().into_iter().collect(),
        }
    }

    fn put(&mut self, region: Region) {
        match self.holder {
            Holder::Mapped => self.free.push(region),
            _ => drop(region),
        }
    }
}

/// Runs the job. `lock` pins the current memory of the process, if the system allows it.
pub fn run(job: &Recycle, lock: impl FnOnce() -> bool) -> Result<PagingReport, Failure> {
    let sane = job.threads.iter().all(|count| (1..=1024).contains(count));
    if !sane || job.total > Bytes(1 << 46) {
        return Err(Failure::Instructions("a number is out of range".into()));
    }
    let (mut cold, mut hot) = (Times::new(), Distribution::default());
    let mut report = harness::report(lock());
    let mut regions = WorkingSet::make(job.holder, job.total, job.seed)?.into_regions();
    let mut pool = Pool {
        holder: job.holder,
        free: Vec::with_capacity(regions.len()),
    };
    // The first half was written first, so under a memory limit the kernel swaps it out first.
    let half = regions.len() / 2;
    regions.drain(..half).for_each(|region| pool.put(region));
    std::thread::sleep(REST);
    let before = Counters::now();
    let taken = use_cold(&mut pool, half, job.seconds, &mut cold)?;
    taken.into_iter().for_each(|region| pool.put(region));
    for threads in &job.threads {
        let (times, rate) = use_hot(&mut pool, *threads, job.seconds)?;
        report.figures.insert(Recycle::rate_figure(*threads), rate);
        // Report the times measured with one thread. If the job has a single thread count, report
        // the times of that count.
        if *threads == 1 || job.threads.len() == 1 {
            hot = times;
        }
    }
    report.figures.extend(Counters::now().since(&before));
    let mut figure = |name: &str, count: u64| report.figures.insert(name.to_owned(), count as f64);
    figure("cold_regions", cold.count());
    figure("regions", job.total.0 / REGION as u64);
    for (name, times) in [("cold", cold.distribution()), ("hot", hot)] {
        report.distributions.insert(name.to_owned(), times);
    }
    Ok(report)
}

/// Takes up to `count` regions, and writes every page of each. Stops after `longest`. Returns the
/// regions.
fn use_cold(
    pool: &mut Pool,
    count: usize,
    longest: Duration,
    times: &mut Times,
) -> Result<Vec<Region>, Failure> {
    let end = Instant::now() + longest;
    let mut taken = Vec::with_capacity(count);
    while taken.len() < count && Instant::now() < end {
        let start = Instant::now();
        let mut region = pool.take()?;
        region.touch();
        times.record(start.elapsed());
        taken.push(region);
    }
    Ok(taken)
}

/// Takes a region, writes every page, and returns the region to the pool, repeatedly in each of
/// `threads` parallel threads. Returns the distribution of the times, and the total rate per
/// second.
fn use_hot(
    pool: &mut Pool,
    threads: usize,
    longest: Duration,
) -> Result<(Distribution, f64), Failure> {
    let mut own: Vec<Pool> = (0..threads).map(|_| pool.split()).collect();
    let barrier = Barrier::new(threads);
    let done = std::thread::scope(|scope| {
        let start = |own| scope.spawn(|| again(own, &barrier, longest));
        let running: Vec<_> = own.iter_mut().map(start).collect();
        let joined = running.into_iter().map(|thread| thread.join());
        joined
            .map(|done| done.map_err(|_| Failure::Thread)?)
            .collect::<Result<Vec<_>, Failure>>()
    });
    own.into_iter().for_each(|own| pool.free.extend(own.free));
    let done = done?;
    let rate = |(times, span): &(Times, Duration)| {
        times.count() as f64 / span.as_secs_f64().max(f64::MIN_POSITIVE)
    };
    Ok((
        merged(done.iter().map(|(times, _)| times)),
        done.iter().map(rate).sum(),
    ))
}

/// Runs one thread of [`use_hot`]. Returns its times and the length of its measured span.
fn again(
    pool: &mut Pool,
    barrier: &Barrier,
    longest: Duration,
) -> Result<(Times, Duration), Failure> {
    let mut times = Times::new();
    let mut once = || -> Result<Duration, Failure> {
        let start = Instant::now();
        let mut region = pool.take()?;
        region.touch();
        pool.put(region);
        Ok(start.elapsed())
    };
    let begin = Instant::now();
    let mut warmed = Ok(());
    for _ in 0..WARM_UP {
        if warmed.is_err() || begin.elapsed() >= longest {
            break;
        }
        warmed = once().map(|_| ());
    }
    // Even a thread that failed must reach the barrier, because the others wait for it.
    barrier.wait();
    warmed?;
    let begin = Instant::now();
    while begin.elapsed() < longest {
        times.record(once()?);
    }
    Ok((times, begin.elapsed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_holder_gives_cold_and_hot_times() {
        for holder in [
            Holder::Lgalloc,
            Holder::Malloc,
            Holder::Mapped,
            Holder::PublishedWorker,
        ] {
            let report = run(
                &Recycle {
                    total: Bytes::from_mib(16),
                    threads: vec![1, 2],
                    holder,
                    seed: 3,
                    seconds: Duration::from_millis(100),
                },
                || false,
            )
            .expect("run");
            assert_eq!(report.distributions["cold"].count(), 4, "{holder:?}");
            assert!(report.distributions["hot"].count() > 0, "{holder:?}");
            for figure in ["hot_per_s", "hot_per_s_x2"] {
                assert!(report.figures[figure] > 0.0, "{holder:?}: {figure}");
            }
        }
    }
}
