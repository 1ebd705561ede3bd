//! Regions that come back from a pool whose memory has gone to swap.

use std::time::{Duration, Instant};

use heapdrome_paging::{Counters, Holder, Recycle, Report};

use crate::failure::Failure;
use crate::harness;
use crate::regions::{REGION, Region, WorkingSet};
use crate::times::Times;

/// Uses of the hot region that do not count.
const WARM_UP: usize = 100;
/// Longer than lgalloc trusts a free region to be in memory.
const REST: Duration = Duration::from_millis(150);

/// Where regions are taken from and returned to.
struct Pool {
    holder: Holder,
    /// For mappings, which are kept as they are: the free ones.
    free: Vec<Region>,
}

impl Pool {
    fn take(&mut self) -> Result<Region, Failure> {
        match self.free.pop() {
            Some(region) => Ok(region),
            None => Region::take(self.holder),
        }
    }

    fn put(&mut self, region: Region) {
        match self.holder {
            Holder::Mapped => self.free.push(region),
            _ => drop(region),
        }
    }
}

/// Runs the job. `lock` keeps what the process has at that moment from being swapped, if it can.
pub fn run(job: &Recycle, lock: impl FnOnce() -> bool) -> Result<Report, Failure> {
    if !(0.0..=86_400.0).contains(&job.seconds) || job.total > 1 << 46 {
        return Err(Failure::Instructions("a number is out of range".into()));
    }
    let seconds = Duration::from_secs_f64(job.seconds);
    let (mut cold, mut hot) = (Times::new(), Times::new());
    let mut report = harness::report(lock());
    let mut regions = WorkingSet::make(job.holder, job.total, job.seed)?.into_regions();
    let mut pool = Pool {
        holder: job.holder,
        free: Vec::with_capacity(regions.len()),
    };
    // The first half was written first, and is where swapping began.
    let half = regions.len() / 2;
    regions.drain(..half).for_each(|region| pool.put(region));
    std::thread::sleep(REST);
    let before = Counters::now();
    let taken = use_cold(&mut pool, half, seconds, &mut cold)?;
    taken.into_iter().for_each(|region| pool.put(region));
    let (count, span) = use_hot(&mut pool, seconds, &mut hot)?;
    report.figures.extend(Counters::now().since(&before));
    let rate = count as f64 / span.as_secs_f64().max(f64::MIN_POSITIVE);
    report.figures.insert("hot_per_s".to_owned(), rate);
    let figures = [
        ("cold_regions", cold.count()),
        ("regions", job.total / REGION as u64),
    ];
    report
        .figures
        .extend(figures.map(|(name, value)| (name.to_owned(), value as f64)));
    for (name, times) in [("cold", cold), ("hot", hot)] {
        report
            .distributions
            .insert(name.to_owned(), times.distribution());
    }
    Ok(report)
}

/// Takes regions, each once, and writes every page.
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

/// Takes a region, writes every page, and returns it, again and again.
fn use_hot(
    pool: &mut Pool,
    longest: Duration,
    times: &mut Times,
) -> Result<(u64, Duration), Failure> {
    let mut once = || -> Result<Duration, Failure> {
        let start = Instant::now();
        let mut region = pool.take()?;
        region.touch();
        pool.put(region);
        Ok(start.elapsed())
    };
    for _ in 0..WARM_UP {
        once()?;
    }
    let begin = Instant::now();
    while begin.elapsed() < longest {
        times.record(once()?);
    }
    Ok((times.count(), begin.elapsed()))
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
                    total: 16 << 20,
                    holder,
                    seed: 3,
                    seconds: 0.1,
                },
                || false,
            )
            .expect("run");
            assert_eq!(report.distributions["cold"].count(), 4, "{holder:?}");
            assert!(report.distributions["hot"].count() > 0, "{holder:?}");
            assert!(report.figures["hot_per_s"] > 0.0);
        }
    }
}
