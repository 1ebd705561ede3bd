//! Growth of magazines, and the limits of their capacity.

use heapdrome_pages::Pages;

use crate::heap::depot::LEAST_KEPT;
use crate::heap::heaps::Heaps;
use crate::heap::magazine::Magazine;
use crate::heap::thread_heap::HeapRef;
use crate::size_class::{FIRST_SHARED, SizeClass};

/// Divisor that limits the magazines. All magazines together may hold about live memory divided by
/// this number.
const LIVE_PART: usize = 8;

/// Returns the bytes by which a heap's magazines may still grow, given its remaining budget. Keeps
/// all magazines near 1/[`LIVE_PART`] of live memory.
fn may_grow_by<P: Pages>(heaps: &Heaps<P>, budget: usize) -> usize {
    // One thread, usually the main thread, mostly waits for the others, so it does not count.
    let threads = heaps.shards.threads().max(2) - 1;
    let share = heaps.memory().live_bytes() / (LIVE_PART * threads);
    let whole = heaps.budget();
    let spent = whole.saturating_sub(budget);
    share.max(LEAST_KEPT).min(whole).saturating_sub(spent)
}

/// Enlarges a magazine if the limits allow. Returns whether it was enlarged.
pub(super) fn grow<P: Pages>(heaps: &Heaps<P>, heap: HeapRef, class: SizeClass) -> bool {
    let limit = heaps.magazine_limit();
    let magazine = heap.magazine(class);
    if magazine.resting() != 0 {
        return false;
    }
    let old = magazine.capacity();
    let wanted = if old == 0 {
        Magazine::first_capacity(class, limit)
    } else {
        Magazine::next_capacity(old).min(Magazine::largest(class, limit))
    };
    let cost = wanted.saturating_sub(old) * class.size();
    // The limit does not apply to the first slots for small blocks, which cost little. It applies
    // to larger classes, because one cached block of each would take much of a small heap.
    let bound = old != 0 || class.number() >= FIRST_SHARED;
    if wanted <= old || (bound && cost > may_grow_by(heaps, heap.budget.get())) {
        return false;
    }
    let memory = heaps.memory();
    if !magazine.resize(wanted, &heap.metadata, &memory.structures, &memory.pages) {
        return false;
    }
    heap.budget.set(heap.budget.get().saturating_sub(cost));
    true
}
