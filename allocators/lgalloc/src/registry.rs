//! The registry of thread caches: a fixed table, so that nobody allocates to join it and a thief
//! walks it without a lock.

use crate::class::{CLASSES, PLACES, SizeClass};
use crate::region::Region;
use crate::slot::{Counters, Slot, Stack};
use crate::sync::{AtomicBool, AtomicUsize};

/// Threads beyond this many work without a cache.
pub const SLOTS: usize = 256;

impl Counters {
    const fn new() -> Self {
        Self {
            allocations: AtomicUsize::new(0),
            deallocations: AtomicUsize::new(0),
            slow: AtomicUsize::new(0),
        }
    }
}

impl Slot {
    /// A slot that nobody owns.
    pub const fn new() -> Self {
        Self {
            owned: AtomicBool::new(false),
            clock: AtomicUsize::new(0),
            cached: AtomicUsize::new(0),
            lease: AtomicUsize::new(0),
            robbed: AtomicBool::new(false),
            stacks: [const {
                Stack {
                    top: AtomicUsize::new(0),
                    places: [const { AtomicUsize::new(0) }; PLACES],
                }
            }; CLASSES],
            counters: [const { Counters::new() }; CLASSES],
        }
    }
}

/// The registry.
pub static SLOT_TABLE: [Slot; SLOTS] = [const { Slot::new() }; SLOTS];

/// A slot for the calling thread.
pub fn claim_slot() -> Option<&'static Slot> {
    SLOT_TABLE.iter().find(|slot| slot.claim())
}

/// A region out of any cache.
pub fn steal_from_any(class: SizeClass) -> Option<Region> {
    SLOT_TABLE.iter().find_map(|slot| slot.steal(class))
}

#[cfg(test)]
#[path = "slot_tests.rs"]
mod tests;
