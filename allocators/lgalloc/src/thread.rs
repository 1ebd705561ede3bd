//! The fast path: the calling thread's own cache.

use std::cell::Cell;

use crate::class::SizeClass;
use crate::region::Region;
use crate::slot::{Slot, claim_slot};
use crate::{config, os, pool};

/// A slot borrows from the cap in steps of this many bytes.
const LEASE_STEP: usize = 4 << 20;

#[derive(Clone, Copy)]
enum State {
    /// Nothing tried yet.
    New,
    Has(&'static Slot),
    /// All slots are taken, or the thread is past its end.
    Without,
}

thread_local! {
    /// Without a destructor, so that it may be read at any time of a thread's life.
    static STATE: Cell<State> = const { Cell::new(State::New) };
    /// Gives the slot up when the thread ends.
    static END: End = const { End };
}

struct End;

impl Drop for End {
    fn drop(&mut self) {
        let State::Has(slot) = STATE.replace(State::Without) else {
            return;
        };
        // The lease goes back before the regions, which then count in the pool.
        pool::unlease_dirty(slot.lease());
        slot.set_lease(0);
        for class in (0..crate::class::CLASSES).filter_map(SizeClass::of_index) {
            while let Some(region) = slot.pop(class) {
                pool::put(region, class);
            }
        }
        slot.leave();
    }
}

#[cold]
fn join() -> Option<&'static Slot> {
    // A thread past its destructors has no `END` to give a slot up again.
    let slot = END.try_with(|_| ()).ok().and_then(|()| claim_slot());
    STATE.set(slot.map_or(State::Without, State::Has));
    slot
}

#[inline]
fn slot() -> Option<&'static Slot> {
    match STATE.get() {
        State::Has(slot) => Some(slot),
        State::New => join(),
        State::Without => None,
    }
}

/// The slot of this thread, if it has one; for the child of a fork.
pub fn own_slot() -> Option<&'static Slot> {
    match STATE.get() {
        State::Has(slot) => Some(slot),
        _ => None,
    }
}

/// A region of a class, with undefined contents.
#[inline]
pub fn take(class: SizeClass) -> Option<usize> {
    if let Some(slot) = slot() {
        slot.counters[class.index()].allocated();
        if let Some(region) = slot.pop(class) {
            if region.age(os::now()) > config::stale_after_ms() {
                pool::freshen(region.start(), class);
            }
            return Some(region.start());
        }
    }
    take_slow(class)
}

#[cold]
#[inline(never)]
fn take_slow(class: SizeClass) -> Option<usize> {
    if let Some(slot) = own_slot() {
        slot.counters[class.index()].went_slow();
    }
    let (region, dirty) = pool::take(class)?;
    if dirty && region.age(os::now()) > config::stale_after_ms() {
        pool::freshen(region.start(), class);
    }
    Some(region.start())
}

/// Takes a region back.
#[inline]
pub fn put(start: usize, class: SizeClass) {
    let region = Region::new(start, os::now());
    if let Some(slot) = slot() {
        slot.counters[class.index()].deallocated();
        if slot.push(class, region) {
            return;
        }
    }
    put_slow(region, class);
}

#[cold]
#[inline(never)]
fn put_slow(region: Region, class: SizeClass) {
    if let Some(slot) = own_slot() {
        if slot.settle() && slot.push(class, region) {
            return;
        }
        // More of the cap, while the thread's own budget allows it.
        let room = slot.has_place(class);
        let wanted = slot.cached().saturating_add(class.bytes());
        if room && wanted <= config::thread_budget() && wanted > slot.lease() {
            let step = (wanted - slot.lease()).max(LEASE_STEP);
            if pool::lease_dirty(step) {
                slot.set_lease(slot.lease() + step);
                if slot.push(class, region) {
                    return;
                }
            }
        }
    }
    pool::put(region, class);
}
