//! Measurement of the memory that stays resident after threads have taken many regions and returned
//! all of them.

use std::ptr::NonNull;
use std::sync::Barrier;

use heapdrome_lgalloc::{Config, Handle, allocate, deallocate};
use heapdrome_paging::Counters;
use heapdrome_schema::{Burst, Bytes, Holder, PagingReport};

use crate::failure::Failure;
use crate::published;
use crate::regions::{PAGE, REGION};

/// Sizes of the regions in bytes: the five smallest size classes of lgalloc.
const SIZES: [usize; 5] = [REGION, 2 * REGION, 4 * REGION, 8 * REGION, 16 * REGION];

/// A region of any size. Its owner must free it with `give_back`.
enum Taken {
    Lgalloc(Handle),
    Published(published::Handle),
}

impl Taken {
    /// Takes a region, and writes one byte in each page.
    fn new(holder: Holder, bytes: usize) -> Result<Self, Failure> {
        let (start, taken): (NonNull<u8>, Self) = match holder {
            Holder::Lgalloc => {
                let (start, _, handle) = allocate::<u8>(bytes)?;
                (start, Self::Lgalloc(handle))
            }
            Holder::Published | Holder::PublishedWorker => {
                let (start, handle) = published::take(holder, bytes)?;
                (start, Self::Published(handle))
            }
            Holder::Malloc | Holder::Mapped => {
                let told = format!("{} keeps nothing that is returned", holder.name());
                return Err(Failure::Instructions(told));
            }
        };
        for page in 0..bytes / PAGE {
            // SAFETY: `start` points to a region of `bytes` bytes, and `page * PAGE` is below
            // `bytes`. `taken` owns the region, so no other thread accesses it.
            unsafe { start.add(page * PAGE).write_volatile(1) };
        }
        Ok(taken)
    }

    fn give_back(self) {
        match self {
            Self::Lgalloc(handle) => deallocate(handle),
            Self::Published(handle) => published::put(handle),
        }
    }
}

/// Runs the job. Measures memory three times while all threads wait: before they take regions,
/// after they have taken all of them, and after they have returned all of them.
///
/// # Errors
/// When a number is out of range, the holder keeps no returned regions, memory runs out, a thread
/// panics, or the resident memory cannot be read.
pub fn run(job: &Burst) -> Result<PagingReport, Failure> {
    if !(1..=256).contains(&job.threads) || job.each > Bytes(1 << 36) {
        return Err(Failure::Instructions("a number is out of range".into()));
    }
    let counters = Counters::now();
    let barrier = Barrier::new(job.threads + 1);
    let (looked, taken) = std::thread::scope(|scope| {
        let start = |_| scope.spawn(|| one_thread(job, &barrier));
        let running: Vec<_> = (0..job.threads).map(start).collect();
        let looked = [(); 3].map(|()| {
            barrier.wait();
            let resident = resident();
            barrier.wait();
            resident
        });
        let joined = running.into_iter().map(|thread| thread.join());
        let taken = joined
            .map(|done| done.map_err(|_| Failure::Thread)?)
            .collect::<Result<Vec<Bytes>, Failure>>();
        (looked, taken)
    });
    let [before, most, after] = looked;
    let before = before?;
    let mut report = PagingReport {
        figures: Counters::now().since(&counters),
        ..PagingReport::default()
    };
    let mut figure =
        |name: &str, bytes: Bytes| report.figures.insert(name.to_owned(), bytes.as_f64());
    figure("taken_bytes", taken?.into_iter().sum());
    figure("resident_at_most_bytes", most? - before);
    figure("resident_after_bytes", after? - before);
    if job.holder == Holder::Lgalloc {
        figure("cap_bytes", Bytes(Config::default().dirty_cap as u64));
    }
    Ok(report)
}

/// Takes regions of every size, and frees them. Before, between and after these two steps, it waits
/// while the measuring thread measures the memory. Both threads meet at a barrier before each
/// measurement and again after it. Returns the number of bytes that it took.
fn one_thread(job: &Burst, barrier: &Barrier) -> Result<Bytes, Failure> {
    let wait = || {
        barrier.wait();
        barrier.wait();
    };
    wait();
    let taken = take_all(job);
    // Even a thread that failed must reach the barrier, because the others wait for it.
    wait();
    let given = taken.map(|(taken, bytes)| {
        taken.into_iter().for_each(Taken::give_back);
        bytes
    });
    wait();
    given
}

fn take_all(job: &Burst) -> Result<(Vec<Taken>, Bytes), Failure> {
    let (mut taken, mut bytes) = (Vec::new(), Bytes(0));
    for size in SIZES {
        for _ in 0..(job.each.0 / size as u64).max(1) {
            taken.push(Taken::new(job.holder, size)?);
            bytes = bytes + Bytes(size as u64);
        }
    }
    Ok((taken, bytes))
}

/// Returns the number of resident bytes of this process.
fn resident() -> Result<Bytes, Failure> {
    const FILE: &str = "/proc/self/statm";
    let text = std::fs::read_to_string(FILE).map_err(|error| Failure::System(FILE, error))?;
    let pages = text
        .split_whitespace()
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok());
    let pages =
        pages.ok_or_else(|| Failure::System(FILE, std::io::ErrorKind::InvalidData.into()))?;
    // SAFETY: `sysconf` has no preconditions.
    let page = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(PAGE as u64);
    Ok(Bytes(page) * pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_keeps_nothing_is_refused() {
        let job = |holder, threads| Burst {
            holder,
            threads,
            each: Bytes::from_mib(2),
        };
        for job in [job(Holder::Mapped, 1), job(Holder::Lgalloc, 0)] {
            assert!(matches!(run(&job), Err(Failure::Instructions(_))));
        }
    }
}
