//! Takes and frees regions: on the fast path from the calling thread's own cache, and otherwise
//! from the shared pool.
//!
//! The fast path reads the clock when it takes a region, but not when it frees one. The freed
//! region gets the time when the thread last read the clock: in an allocation, a resize, or a free
//! on the slow path. So the region may look older than it is, and may be checked for swapped parts
//! unnecessarily.

use crate::class::SizeClass;
use crate::purge::freshen;
use crate::region::Region;
use crate::registry::{CLEAN, SHARED};
use crate::thread_slot::{own_slot, slot_or_join};
use crate::{config, fork, os, pool, worker};

/// Takes a region of a class, with undefined contents.
#[inline]
pub fn take(class: SizeClass) -> Option<usize> {
    let Some(slot) = own_slot() else {
        return take_slow(class, None);
    };
    let now = os::now();
    slot.set_clock(now);
    slot.counters[class.index()].allocated();
    match slot.pop(class) {
        Some(region) if region.age(now) <= config::stale_after_ms() => Some(region.start()),
        found => take_slow(class, found),
    }
}

/// Takes the region `found`, which has been free for longer than the staleness threshold, or a
/// region of the table that was freed later. If `found` is `None`, takes a region from the shared
/// pool, or from another thread's cache. Drops the parts of an old region that are in swap.
#[cold]
#[inline(never)]
fn take_slow(class: SizeClass, found: Option<Region>) -> Option<usize> {
    worker::start_if_wanted();
    let now = os::now();
    let (region, dirty) = match found {
        Some(region) => {
            let mut table = SHARED.dirty.lock();
            (table.exchange_for_younger(region, class, now), true)
        }
        None => {
            count_miss(class, now);
            fork::install();
            pool::take(class)?
        }
    };
    if dirty && region.age(now) > config::stale_after_ms() {
        freshen(region.start(), class);
    }
    Some(region.start())
}

fn count_miss(class: SizeClass, now: u64) {
    let joined = own_slot().is_some();
    let Some(slot) = slot_or_join() else { return };
    let counters = &slot.counters[class.index()];
    if !joined {
        slot.set_clock(now);
        counters.allocated();
    }
    counters.went_slow();
}

/// Frees a region.
#[inline]
pub fn put(start: usize, class: SizeClass) {
    if let Some(slot) = own_slot() {
        slot.counters[class.index()].deallocated();
        if slot.push(class, Region::new(start, slot.clock())) {
            return;
        }
    }
    put_slow(start, class);
}

#[cold]
#[inline(never)]
fn put_slow(start: usize, class: SizeClass) {
    worker::start_if_wanted();
    let now = os::now();
    let region = Region::new(start, now);
    let joined = own_slot().is_some();
    if let Some(slot) = slot_or_join() {
        slot.set_clock(now);
        if !joined {
            slot.counters[class.index()].deallocated();
        }
        SHARED.put_by_owner(slot, region, class);
    } else {
        SHARED.put(region, class);
    }
}

/// Frees a clean region: one whose pages hold no contents.
pub fn put_clean(start: usize, class: SizeClass) {
    if let Some(slot) = own_slot() {
        slot.counters[class.index()].deallocated();
    }
    CLEAN.lock().put(start, class);
}

/// Frees a region of `class` except its first part, which has the class `wanted`.
pub fn put_rest(start: usize, class: SizeClass, wanted: SizeClass) {
    count_change(class, wanted);
    for piece in (wanted.index()..class.index()).filter_map(SizeClass::of_index) {
        // Bypass `put`, which would count a deallocation for each piece.
        put_slow(start + piece.bytes(), piece);
    }
}

/// Counts a region that changes its class: a deallocation in `from`, and an allocation in `to`.
pub fn count_change(from: SizeClass, to: SizeClass) {
    if let Some(slot) = slot_or_join() {
        slot.set_clock(os::now());
        slot.counters[from.index()].deallocated();
        slot.counters[to.index()].allocated();
    }
}
