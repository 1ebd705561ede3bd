//! Static shared state. The caches are a fixed table. So a cache needs no memory from a heap, and a
//! thief can search all caches without a lock.

use heapdrome_pages::Linux;

use crate::buddy::Buddy;
use crate::cap::Cap;
use crate::class::{CLASSES, PLACES, SLOTS, SizeClass};
use crate::config;
use crate::dirty::Dirty;
use crate::purge::purge;
use crate::region::Region;
use crate::shared::{Policy, Shared};
use crate::slot::{Counters, Slot, Stack};
use crate::sync::{AtomicBool, AtomicUsize, Lock};

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
    /// Creates a slot without an owner.
    pub const fn new() -> Self {
        Self {
            owned: AtomicBool::new(false),
            clock: AtomicUsize::new(0),
            cached: AtomicUsize::new(0),
            lease: AtomicUsize::new(0),
            taking: AtomicUsize::new(0),
            wanted: AtomicBool::new(false),
            shared: AtomicBool::new(false),
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

impl<P> Shared<P> {
    /// Creates the state without free regions and without claimed slots.
    pub const fn new(policy: P) -> Self {
        Self {
            policy,
            slots: [const { Slot::new() }; SLOTS],
            claimed: AtomicUsize::new(0),
            dirty: Lock::new(Dirty::new()),
            cap: Cap {
                held: AtomicUsize::new(0),
            },
        }
    }
}

/// Policy of the process, which uses its settings and its address space.
#[derive(Debug)]
pub struct Process;

impl Policy for Process {
    fn budget(&self) -> usize {
        config::thread_budget()
    }

    fn most(&self) -> usize {
        config::dirty_cap()
    }

    fn clean(&self, region: Region, class: SizeClass) {
        purge(region.start(), class.bytes());
        CLEAN.lock().put(region.start(), class);
    }
}

/// Free regions with contents, in caches and in the table.
pub static SHARED: Shared<Process> = Shared::new(Process);

/// Free regions without contents. Except in fork handlers, no thread holds both this lock and the
/// lock of dirty regions.
pub static CLEAN: Lock<Buddy<Linux>> = Lock::new(Buddy::new(Linux));

#[cfg(test)]
#[path = "dirty_tests.rs"]
mod dirty_tests;
#[cfg(test)]
#[path = "shared_tests.rs"]
mod shared_tests;
#[cfg(test)]
#[path = "slot_tests.rs"]
mod tests;
