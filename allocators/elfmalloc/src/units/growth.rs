//! Growth of an arena: commits units at its end, and decides on huge pages for them.

use core::ops::Range;

use heapdrome_pages::system::{Usage, usage};
use heapdrome_pages::{Advice, Pages, Placed};

use crate::size_class::UNIT_SHIFT;
use crate::units::arena::{Arena, HUGE, LARGEST_RUN, Step};

/// Number of units from which memory that is filled soon may request huge pages: the committed
/// units of a fast-growing heap or of a heap of the hardened variant, or the units of a large
/// block. The unused part of the last huge page is then small in proportion.
pub(crate) const HUGE_FROM: usize = 64;
/// Number of committed units from which a slowly growing heap may request huge pages.
const HUGE_FROM_SLOW: usize = 128;
/// Processor time per unit, in microseconds, below which growth counts as fast. The page faults of
/// a unit of small pages take about half as long.
const FAST: u64 = 64;
/// Number of units that a commit skips when it first meets another mapping. Each further skip of
/// the commit is twice as long.
const LEAST_GAP: usize = 1024;

/// Decision on huge pages. Undecided is zero in memory, and counts as wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HugePages {
    Undecided = 0,
    Wanted,
    Refused,
}

impl HugePages {
    /// Converts a setting into a decision; `None` leaves it undecided.
    pub(crate) const fn of(wanted: Option<bool>) -> Self {
        match wanted {
            None => Self::Undecided,
            Some(true) => Self::Wanted,
            Some(false) => Self::Refused,
        }
    }

    /// Returns whether memory that is filled soon requests huge pages.
    pub(super) fn wanted(self) -> bool {
        self != Self::Refused
    }
}

/// Returns whether the next commit, for a run of `count` units, should request huge pages. Once one
/// commit has requested them, all later ones must: the arena records only the first unit that may
/// be part of a huge page.
fn wants_huge(arena: &Arena, pages: &impl Pages, count: usize) -> bool {
    let from = arena.committed;
    if arena.huge_from.is_some() || count >= HUGE_FROM {
        return true;
    }
    if from < HUGE_FROM || arena.has_states() {
        // An arena with fewer committed units than `HUGE_FROM` requests no huge pages for a short
        // run. The hardened variant touches every block, so for it the arena's size alone decides.
        return from >= HUGE_FROM;
    }
    let Some((step, now)) = arena.last_step.zip(usage()) else {
        return from >= HUGE_FROM_SLOW;
    };
    (from >= HUGE_FROM_SLOW || step.went_fast(now)) && step.was_touched(now, pages.page_size())
}

impl Step {
    /// Returns whether the process has spent less processor time than [`FAST`] per unit of the step
    /// since the commit.
    fn went_fast(self, now: Usage) -> bool {
        now.microseconds.saturating_sub(self.before.microseconds) < self.units as u64 * FAST
    }

    /// Returns whether the process has touched at least half of the step's bytes since the commit.
    /// If most blocks stay untouched, the few touched ones would make whole huge pages resident.
    ///
    /// The number of page faults shows this if pages are small. If the system creates huge pages by
    /// itself, a rise in the maximum of resident memory shows it.
    fn was_touched(self, now: Usage, page_size: usize) -> bool {
        let faults = now.faults.saturating_sub(self.before.faults);
        let resident = now.most_resident.saturating_sub(self.before.most_resident);
        // If the system counts no faults, assume that memory was touched.
        now.faults == 0 || resident.max(faults * page_size) * 2 >= self.units << UNIT_SHIFT
    }
}

/// Commits enough units for a run of `count` units, and `slack` units for its alignment. Returns
/// the number of newly committed units.
///
/// # Errors
///
/// `Occupied` if the arena has no room, or cannot skip another mapping; `Refused` if the system
/// refuses to commit units, descriptors or states.
pub(crate) fn commit(
    arena: &mut Arena,
    pages: &impl Pages,
    huge: bool,
    count: usize,
    slack: usize,
) -> Result<usize, Placed> {
    let mut gap = LEAST_GAP;
    loop {
        match commit_at_frontier(arena, pages, huge, count, slack) {
            Err(Placed::Occupied) if arena.skip(pages, gap) => gap *= 2,
            done => return done,
        }
    }
}

fn commit_at_frontier(
    arena: &mut Arena,
    pages: &impl Pages,
    huge: bool,
    count: usize,
    slack: usize,
) -> Result<usize, Placed> {
    let at_end = arena.free.run_before(arena.committed, count);
    let needed = count + slack - at_end.min(count);
    if needed > arena.uncommitted() {
        return Err(Placed::Occupied);
    }
    let from = arena.committed;
    let regular = (from / 8).clamp(16, LARGEST_RUN);
    let mut step = regular;
    let now_huge = huge && wants_huge(arena, pages, count);
    if now_huge {
        let skew = arena.skew();
        step = (skew + from + step.max(needed)).next_multiple_of(HUGE) - skew - from;
    }
    let mut units = step.min(arena.uncommitted()).max(needed);
    let mut placed = arena.commit(pages, units);
    if placed != Placed::Done && units > needed {
        units = needed;
        placed = arena.commit(pages, units);
    }
    if placed != Placed::Done {
        return Err(placed);
    }
    if now_huge {
        advise_huge(pages, arena, from, units);
    }
    // In a small heap, the next commit does not depend on this commit, so skip the system call.
    let matters = from + units >= HUGE_FROM;
    let is_open = huge && matters && !arena.has_states() && arena.huge_from.is_none();
    arena.last_step = is_open.then(usage).flatten().map(|before| Step {
        before,
        // The program may never touch the many units of a large block, so they do not show how fast
        // the heap grows.
        units: units.min(regular),
    });
    Ok(units)
}

/// Requests huge pages for all whole huge pages within the new units.
#[cold]
fn advise_huge(pages: &impl Pages, arena: &mut Arena, from: usize, units: usize) {
    let (first, count) = huge_pages_in(arena.skew(), from, units);
    if count != 0 {
        arena.huge_from.get_or_insert(first);
        // SAFETY: the range was just committed, and no other code uses it yet.
        unsafe { pages.advise(arena.address(first), count << UNIT_SHIFT, Advice::HugePages) };
    }
}

/// Returns the part of a run that can be purged without splitting a huge page: the units before the
/// first one that may be part of a huge page, or the whole huge pages within the run.
pub(crate) fn whole_pages(arena: &Arena, first: usize, count: usize) -> (usize, usize) {
    let huge_from = arena.huge_from.unwrap_or(usize::MAX);
    if first < huge_from {
        return (first, count.min(huge_from - first));
    }
    huge_pages_in(arena.skew(), first, count)
}

/// Returns the units of all huge pages that overlap the given units; none if huge pages were not
/// requested there.
pub(crate) fn huge_pages_around(arena: &Arena, first: usize, count: usize) -> Range<usize> {
    let skew = arena.skew();
    let begin = ((skew + first) / HUGE * HUGE).saturating_sub(skew);
    let end = (skew + first + count).next_multiple_of(HUGE) - skew;
    begin.max(arena.huge_from.unwrap_or(usize::MAX))..end.min(arena.committed)
}

/// Returns the number of units outside a run that may become resident when the run is touched: the
/// other units of the run's untouched huge pages. The run must still be free.
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

/// Marks all free units in the huge pages of the given units as dirty: touching the given units may
/// make these huge pages resident. Returns the number of marked units that were clean.
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

/// Returns the first unit and the number of units of the whole huge pages within the given units.
/// `skew` is the offset of unit 0 in its huge page.
fn huge_pages_in(skew: usize, first: usize, count: usize) -> (usize, usize) {
    let start = (skew + first).next_multiple_of(HUGE);
    let end = (skew + first + count) / HUGE * HUGE;
    (start - skew, end.saturating_sub(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Step = Step {
        before: Usage {
            microseconds: 1000,
            faults: 500,
            most_resident: 8 << 20,
        },
        units: 16,
    };

    fn after(faults: usize, resident: usize) -> Usage {
        Usage {
            microseconds: 1000,
            faults: 500 + faults,
            most_resident: (8 << 20) + resident,
        }
    }

    #[test]
    fn a_step_was_touched_where_faults_or_resident_memory_say_so() {
        let touched = |faults, resident| STEP.was_touched(after(faults, resident), 4096);
        assert!(!touched(0, 0));
        assert!(!touched(127, 127 * 4096));
        assert!(touched(128, 0));
        assert!(touched(0, 128 * 4096));
        assert!(
            STEP.was_touched(Usage::default(), 4096),
            "nothing is counted"
        );
        assert!(STEP.was_touched(after(8, 0), 65536), "larger pages");
    }

    #[test]
    fn a_step_went_fast_where_it_took_less_than_a_millisecond_for_a_mebibyte() {
        let fast = |microseconds: u64| {
            STEP.went_fast(Usage {
                microseconds: 1000 + microseconds,
                ..after(0, 0)
            })
        };
        assert!(fast(1023));
        assert!(!fast(1024));
    }
}
