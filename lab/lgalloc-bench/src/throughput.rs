//! Throughput of taking and returning regions, and of the operations with which it is compared.

use std::hint::black_box;
use std::time::{Duration, Instant};

use heapdrome_paging::Counters;
use heapdrome_schema::{Holder, PagingReport, Throughput, Variant};

use crate::drive::{Operation, Outcome, drive};
use crate::failure::Failure;
use crate::regions::{Region, malloc_once, take_and_return};

/// Runs the variant of a job, and reports its throughput and the kernel's counters.
pub fn run(job: &Throughput) -> Result<PagingReport, Failure> {
    if job.threads == 0 || job.threads > 1024 {
        return Err(Failure::Instructions("threads must be 1 to 1024".into()));
    }
    let before = Counters::now();
    let outcome = variant(job.variant, job.threads, job.warm_up, job.seconds)
        .map_err(|failure| failure.unwrap_or(Failure::Thread))?;
    let mut report = PagingReport {
        figures: Counters::now().since(&before),
        ..PagingReport::default()
    };
    let mut figure = |name: &str, value: f64| report.figures.insert(name.to_owned(), value);
    figure("ops_per_s", outcome.rate());
    figure("warm_up_ops", outcome.warm_up_operations() as f64);
    if let Some(time) = outcome.time_without_clock() {
        figure("op_without_clock_ns", time);
    }
    if let Some(time) = outcome.time_beside() {
        let published = job.variant == Variant::Lgalloc;
        figure(if published { "published_ns" } else { "kept_ns" }, time);
    }
    report
        .distributions
        .insert("op".to_owned(), outcome.times());
    Ok(report)
}

/// The operation that takes a region, writes to it if `touch` is set, and frees it.
#[derive(Clone, Copy)]
struct Taking {
    holder: Holder,
    advice: Option<libc::c_int>,
    touch: bool,
}

impl Taking {
    /// Returns the operation if a variant takes a region and frees it; `None` for any other
    /// variant.
    fn of(variant: Variant) -> Option<Self> {
        let nohuge = Some(libc::MADV_NOHUGEPAGE);
        let (holder, advice, touch) = match variant {
            Variant::Published => (Holder::Published, None, false),
            Variant::PublishedTouch => (Holder::Published, None, true),
            Variant::Lgalloc => (Holder::Lgalloc, None, false),
            Variant::LgallocTouch => (Holder::Lgalloc, None, true),
            Variant::Sysalloc => (Holder::Malloc, None, false),
            Variant::SysallocTouch => (Holder::Malloc, None, true),
            Variant::SysallocNohuge => (Holder::Malloc, nohuge, false),
            Variant::SysallocNohugeTouch => (Holder::Malloc, nohuge, true),
            Variant::Mmap => (Holder::Mapped, None, false),
            Variant::MmapTouch => (Holder::Mapped, None, true),
            Variant::Clock
            | Variant::Preallocated
            | Variant::Malloc
            | Variant::MallocTouch
            | Variant::MmapDontneed
            | Variant::MmapFree => return None,
        };
        Some(Self {
            holder,
            advice,
            touch,
        })
    }

    fn take(self) -> Result<Region, Failure> {
        let region = Region::take(self.holder)?;
        if let Some(advice) = self.advice {
            region.advise(advice)?;
        }
        Ok(region)
    }

    /// Writes one byte in each page of a kept region, `times` times. Returns the time that this
    /// took.
    fn keep_touching(self, times: u64) -> Result<Duration, Failure> {
        let mut region = self.take()?;
        // The first write to a page costs more than later ones.
        region.touch();
        let start = Instant::now();
        for _ in 0..times {
            black_box(&mut region).touch();
        }
        Ok(start.elapsed())
    }
}

impl Operation<Failure> for Taking {
    fn once(&mut self) -> Result<(), Failure> {
        let mut region = self.take()?;
        if self.touch {
            region.touch();
        }
        drop(black_box(region));
        Ok(())
    }

    fn many(&mut self, times: u64) -> Result<(), Failure> {
        match self.holder {
            Holder::Lgalloc if !self.touch => take_and_return(false, times),
            Holder::Published if !self.touch => take_and_return(true, times),
            _ => (0..times).try_for_each(|_| self.once()),
        }
    }

    /// Runs the reference `times` times, and returns the time that this took. An operation that
    /// writes to each page is compared with writes to a kept region. Any other operation on lgalloc
    /// is compared with the published crate. All other operations have no reference.
    fn beside(&mut self, times: u64) -> Result<Option<Duration>, Failure> {
        match self.holder {
            _ if self.touch => self.keep_touching(times).map(Some),
            Holder::Lgalloc => {
                let start = Instant::now();
                take_and_return(true, times)?;
                Ok(Some(start.elapsed()))
            }
            _ => Ok(None),
        }
    }
}

/// Returns an operation that writes one byte in each page of a kept region.
fn touch_one() -> Result<impl FnMut() -> Result<(), Failure>, Failure> {
    let mut region = Region::take(Holder::Lgalloc)?;
    Ok(move || {
        black_box(&mut region).touch();
        Ok(())
    })
}

fn variant(
    variant: Variant,
    threads: usize,
    warm_up: Duration,
    measured: Duration,
) -> Result<Outcome, Option<Failure>> {
    if let Some(taking) = Taking::of(variant) {
        return drive(threads, warm_up, measured, || Ok(taking));
    }
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
    let plain = |touch: bool| {
        drive(threads, warm_up, measured, || {
            Ok::<_, Failure>(move || malloc_once(touch))
        })
    };
    match variant {
        Variant::Preallocated => drive(threads, warm_up, measured, touch_one),
        Variant::Malloc => plain(false),
        Variant::MallocTouch => plain(true),
        Variant::MmapDontneed => keep(libc::MADV_DONTNEED),
        Variant::MmapFree => keep(libc::MADV_FREE),
        // This arm times the clock alone. The variants that take regions are handled above.
        _ => drive(threads, warm_up, measured, || Ok(|| Ok(()))),
    }
}
