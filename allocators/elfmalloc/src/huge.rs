//! Huge pages at the frontier of an arena.

use heapdrome_pages::{Advice, Pages};

use crate::arena::{Arena, HUGE};
use crate::size_class::UNIT_SHIFT;

/// Asks for huge pages in as much of what was just committed as they fit into.
pub(crate) fn advise_huge(pages: &impl Pages, arena: &mut Arena, from: usize, units: usize) {
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

/// The part of some units that whole huge pages make up; `skew` is how far into one unit 0 lies.
fn huge_pages_in(skew: usize, first: usize, count: usize) -> (usize, usize) {
    let start = (skew + first).next_multiple_of(HUGE);
    let end = (skew + first + count) / HUGE * HUGE;
    (start - skew, end.saturating_sub(start))
}
