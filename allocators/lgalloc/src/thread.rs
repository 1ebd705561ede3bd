//! The fast path: the calling thread's own cache.
//!
//! The clock is read when a region is taken, and not when it is freed: a freed region carries the time
//! of the thread's last allocation. That makes it look older than it is, at worst, and then it is
//! looked at once without need.

use std::cell::Cell;

use crate::class::SizeClass;
use crate::pool::DIRTY;
use crate::region::Region;
use crate::registry::claim_slot;
use crate::slot::Slot;
use crate::{config, os, pool, worker};

thread_local! {
    /// Without a destructor, so that it may be read at any time of a thread's life.
    static SLOT: Cell<Option<&'static Slot>> = const { Cell::new(None) };
    /// Whether a slot was asked for.
    static ASKED: Cell<bool> = const { Cell::new(false) };
    /// Gives the slot up when the thread ends.
    static END: End = const { End };
}

struct End;

impl Drop for End {
    fn drop(&mut self) {
        let Some(slot) = SLOT.take() else { return };
        // The lease goes back before the regions, which then count in the pool.
        slot.end_lease(&DIRTY);
        for class in (0..crate::class::CLASSES).filter_map(SizeClass::of_index) {
            while let Some(region) = slot.pop(class) {
                pool::put(region, class);
            }
        }
        slot.leave();
    }
}

/// The slot of this thread, if it has one.
#[inline]
pub fn own_slot() -> Option<&'static Slot> {
    SLOT.get()
}

/// The same; a thread that has not asked for one does so.
fn slot_or_join() -> Option<&'static Slot> {
    // A thread past its destructors has no `END` to give a slot up again.
    if !ASKED.replace(true) && END.try_with(|_| ()).is_ok() {
        let slot = claim_slot();
        SLOT.set(slot);
    }
    own_slot()
}

/// A region of a class, with undefined contents.
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

/// Takes a region from beyond the cache, or makes sure of one that has been free for long.
#[cold]
#[inline(never)]
fn take_slow(class: SizeClass, found: Option<Region>) -> Option<usize> {
    worker::start_if_wanted();
    let now = os::now();
    let (region, dirty) = match found {
        Some(region) => (pool::exchange_for_younger(region, class, now), true),
        None => {
            count_miss(class, now);
            pool::take(class)?
        }
    };
    if dirty && region.age(now) > config::stale_after_ms() {
        pool::freshen(region.start(), class);
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

/// Takes a region back.
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
        slot.settle();
        let borrow = || {
            let (budget, most) = (config::thread_budget(), config::dirty_cap());
            slot.borrow(class, budget, &DIRTY, most)
        };
        if slot.push(class, region) || (borrow() && slot.push(class, region)) {
            return;
        }
        // The next allocation must find what was freed last, whose pages are the likeliest to be in
        // memory: so it is what was freed before that goes to the pool.
        let to_pool = |older| pool::put(older, class);
        if slot.give_older(class, to_pool) && slot.push(class, region) {
            return;
        }
    }
    pool::put(region, class);
}

/// Takes back a region that has no contents.
pub fn put_clean(start: usize, class: SizeClass) {
    if let Some(slot) = own_slot() {
        slot.counters[class.index()].deallocated();
    }
    pool::put_clean(start, class);
}
