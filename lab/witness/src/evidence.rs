//! Combines the findings on the blocks of all programs into the evidence of a run.

use heapdrome_schema::{CallTime, Evidence, SizeCount, SystemCalls};

use crate::layout::SIZES;
use crate::ledger::{Followed, Ledger};
use crate::tree::Image;

/// Minimum number of timed calls that allows an estimate for all calls.
const ENOUGH_TIMED: u64 = 100;

/// Returns the evidence of a run; `None` if no program's blocks were followed. `ticks_per_second`
/// is the frequency of the counter that times calls.
pub(crate) fn conclude(images: &[Image], ticks_per_second: f64) -> Option<Evidence> {
    let ledgers = || images.iter().filter_map(|image| image.ledger.as_ref());
    let followed = || ledgers().filter_map(|ledger| ledger.followed.as_ref());
    followed().next()?;
    let sum = |of: fn(&Followed) -> u64| followed().map(of).sum::<u64>();
    Some(Evidence {
        sizes: sizes(followed()),
        frees: sum(|one| one.frees),
        freed_by_others: sum(|one| one.freed_by_others),
        peak_live_bytes: followed().map(|one| one.peak).max().unwrap_or(0),
        peak_live_of_all_bytes: sum(|one| one.peak),
        huge_at_end_bytes: images.iter().map(|image| image.huge).max().unwrap_or(0),
        system_calls: system_calls(images, followed()),
        call_time: call_time(ledgers(), ticks_per_second),
    })
}

fn sizes<'a>(followed: impl Iterator<Item = &'a Followed>) -> Vec<SizeCount> {
    let mut sums = [SizeCount::default(); SIZES];
    for one in followed {
        for ((sum, (blocks, bytes)), digits) in sums.iter_mut().zip(&one.sizes).zip(0_u32..) {
            sum.below = 1 << digits;
            sum.blocks += blocks;
            sum.bytes += bytes;
        }
    }
    let mut sums = sums.to_vec();
    sums.retain(|sum| sum.blocks > 0);
    sums
}

/// Returns the tree's system calls for memory, without those that the library made for itself.
/// Returns `None` if the sum is 0: calls were not counted then, because every dynamic loader makes
/// some.
fn system_calls<'a>(
    images: &[Image],
    followed: impl Iterator<Item = &'a Followed>,
) -> Option<SystemCalls> {
    let mut sum = SystemCalls::default();
    for image in images {
        let calls = image.system_calls;
        sum.mmap += calls.mmap;
        sum.munmap += calls.munmap;
        sum.mremap += calls.mremap;
        sum.madvise += calls.madvise;
        sum.brk += calls.brk;
    }
    if sum.total() == 0 {
        return None;
    }
    for one in followed {
        sum.mmap = sum.mmap.saturating_sub(one.own.mmap);
        sum.munmap = sum.munmap.saturating_sub(one.own.munmap);
        sum.madvise = sum.madvise.saturating_sub(one.own.madvise);
    }
    Some(sum)
}

/// Returns the estimated time of all calls, from the mean of each program's timed calls. Returns
/// `None` if too few calls were timed, or there is no counter.
fn call_time<'a>(
    ledgers: impl Iterator<Item = &'a Ledger>,
    ticks_per_second: f64,
) -> Option<CallTime> {
    let mut sum = CallTime::default();
    for ledger in ledgers {
        let Some(followed) = ledger.followed.as_ref().filter(|one| one.timed > 0) else {
            continue;
        };
        let calls = ledger
            .of_allocators()
            .map(|counts| counts.calls)
            .sum::<u64>();
        let mean = followed.ticks as f64 / followed.timed as f64;
        let own = mean - followed.calibration as f64;
        sum.spent_s += own.max(0.0) * calls as f64 / ticks_per_second;
        sum.calls += calls;
        sum.timed += followed.timed;
    }
    let enough = sum.timed >= ENOUGH_TIMED && ticks_per_second > 0.0;
    enough.then_some(sum)
}
