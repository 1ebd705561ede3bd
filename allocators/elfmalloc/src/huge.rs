//! The frontier of an arena: what is committed next, and huge pages there.

use core::ops::Range;

use heapdrome_pages::system::processor_microseconds;
use heapdrome_pages::{Advice, Pages};

use crate::arena::{Arena, HUGE};
use crate::pool::LARGEST_RUN;
use crate::size_class::UNIT_SHIFT;

/// Huge pages are asked for from the point on where this many units are committed, 32 MiB, and what was last committed
/// was touched: what is not used of the last one is then little of the whole.
const HUGE_FROM: usize = 512;
/// The same for a heap that grows fast, 8 MiB: page faults are much of what it does, and it is likely to go on.
const HUGE_FROM_FAST: usize = 128;
/// The same where blocks have states, 4 MiB: the hardened variant touches every block, and so every page.
const HUGE_FROM_TOUCHED: usize = 64;
/// Growth is fast where the process takes fewer microseconds of processor time than this for each unit, a
/// millisecond for a MiB. The faults of small pages are a half of that.
const FAST: u64 = 64;

/// Of the last step, how many units are looked at at most.
const LOOKED_AT: usize = 16;
/// A run of so many units is for blocks of 32 KiB or more. Programs may allocate such buffers first and fill them later.
const TOUCHED_LATER: usize = 4;

/// What was last committed of an arena.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// How many microseconds of processor time the process had taken.
    since: u64,
    first: usize,
    units: usize,
}

/// Whether what is committed next, for a run of `count` units, is to be of huge pages. Once that was so, it stays so:
/// which units may be part of one is known by the first.
fn wants_huge(arena: &Arena, pages: &impl Pages, count: usize) -> bool {
    let from = arena.committed;
    if arena.huge_from != usize::MAX || arena.has_states() && from >= HUGE_FROM_TOUCHED {
        return true;
    }
    let grows = |step: Step| from >= HUGE_FROM || from >= HUGE_FROM_FAST && step.went_fast();
    arena.last_step.is_some_and(|step| {
        grows(step) && (count >= TOUCHED_LATER || step.was_touched(arena, pages))
    })
}

impl Step {
    /// Whether its units were used up fast.
    fn went_fast(self) -> bool {
        processor_microseconds().saturating_sub(self.since) < self.units as u64 * FAST
    }

    /// Whether an eighth of its pages are resident: of slabs just begun few are, of blocks that nobody touches none.
    /// A few pages that are touched among those would make whole huge pages resident.
    fn was_touched(self, arena: &Arena, pages: &impl Pages) -> bool {
        let bytes = self.units.min(LOOKED_AT) << UNIT_SHIFT;
        // SAFETY: the step committed the units, and units stay committed.
        let resident = unsafe { pages.resident_pages(arena.address(self.first), bytes) };
        resident * 8 >= bytes / pages.page_size()
    }
}

/// Commits enough of an arena for a run of `count` units. Returns how many, or `None` where that is refused.
pub(crate) fn commit(
    arena: &mut Arena,
    pages: &impl Pages,
    huge: bool,
    count: usize,
    slack: usize,
) -> Option<usize> {
    let at_end = arena.free.run_before(arena.committed, count);
    let needed = count + slack - at_end.min(count);
    if needed > arena.uncommitted() {
        return None;
    }
    let from = arena.committed;
    let regular = (from / 8).clamp(16, LARGEST_RUN);
    let mut step = regular;
    let now_huge = huge && wants_huge(arena, pages, count);
    if now_huge {
        let skew = arena.skew();
        step = (skew + from + step.max(needed)).next_multiple_of(HUGE) - skew - from;
    }
    let step = step.min(arena.uncommitted());
    let units = [step, needed]
        .into_iter()
        .find(|&units| units >= needed && arena.commit(pages, units))?;
    if now_huge {
        advise_huge(pages, arena, from, units);
    }
    let is_open = huge && !arena.has_states() && arena.huge_from == usize::MAX;
    arena.last_step = is_open.then(|| Step {
        since: processor_microseconds(),
        first: from,
        // What a large block takes at once may never be touched: it does not show how fast the heap grows.
        units: units.min(regular),
    });
    Some(units)
}

/// Asks for huge pages in as much of what was just committed as they fit into.
fn advise_huge(pages: &impl Pages, arena: &mut Arena, from: usize, units: usize) {
    let (first, count) = huge_pages_in(arena.skew(), from, units);
    if count != 0 {
        arena.huge_from = arena.huge_from.min(first);
        // SAFETY: the range was just committed.
        unsafe { pages.advise(arena.address(first), count << UNIT_SHIFT, Advice::HugePages) };
    }
}

/// What of a run may be purged without splitting a huge page: as much as lies before the first, or the
/// whole ones in it.
pub(crate) fn whole_pages(arena: &Arena, first: usize, count: usize) -> (usize, usize) {
    if first < arena.huge_from {
        return (first, count.min(arena.huge_from - first));
    }
    huge_pages_in(arena.skew(), first, count)
}

/// The units of the huge pages that some units lie in; none where huge pages were not asked for.
pub(crate) fn huge_pages_around(arena: &Arena, first: usize, count: usize) -> Range<usize> {
    let skew = arena.skew();
    let begin = ((skew + first) / HUGE * HUGE).saturating_sub(skew);
    let end = (skew + first + count).next_multiple_of(HUGE) - skew;
    begin.max(arena.huge_from)..end.min(arena.committed)
}

/// How many units become resident along with those of a run as soon as these are touched: the rest of huge pages of
/// which nothing may be resident yet. The run is still free.
pub(crate) fn resident_along(arena: &Arena, first: usize, count: usize) -> usize {
    let is_untouched = |page: usize| {
        let dirty = arena.dirty.first_from(page);
        arena.free.run_from(page, HUGE) == HUGE && dirty.is_none_or(|unit| unit >= page + HUGE)
    };
    huge_pages_around(arena, first, count)
        .step_by(HUGE)
        .filter(|&page| is_untouched(page))
        .map(|page| HUGE - ((first + count).min(page + HUGE) - first.max(page)))
        .sum()
}

/// Notes what may become resident along with units that are put to use: the free ones in the same huge
/// pages. Returns how many of those counted as clean.
pub(crate) fn soil_huge_pages(arena: &mut Arena, first: usize, count: usize) -> usize {
    let Range { start, end } = huge_pages_around(arena, first, count);
    let mut soiled = 0;
    let mut from = start;
    while let Some(free) = arena.free.first_from(from).filter(|&free| free < end) {
        let length = arena.free.run_from(free, end - free);
        soiled += arena.dirty.change(free, length, true);
        from = free + length;
    }
    soiled
}

/// The part of some units that whole huge pages make up; `skew` is how far into one unit 0 lies.
fn huge_pages_in(skew: usize, first: usize, count: usize) -> (usize, usize) {
    let start = (skew + first).next_multiple_of(HUGE);
    let end = (skew + first + count) / HUGE * HUGE;
    (start - skew, end.saturating_sub(start))
}
