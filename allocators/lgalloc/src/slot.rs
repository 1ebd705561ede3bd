//! The registry of thread caches: a fixed table, so that nobody allocates to join it and a thief
//! walks it without a lock.
//!
//! Every place of a cache is one word. Only the owner fills an empty place; anybody may empty one, by
//! exchanging the word for zero. A word says by itself which region it is, and whoever has exchanged
//! it owns that region: so it does no harm if the word was taken and put back in between.

use core::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

use crate::class::{CLASSES, SizeClass};
use crate::region::Region;

/// Threads beyond this many work without a cache.
pub const SLOTS: usize = 256;
/// Regions of one class in one cache.
pub const PLACES: usize = 16;

/// What is counted for each class; only the owner of the slot adds.
#[derive(Debug)]
pub struct Counters {
    pub allocations: AtomicUsize,
    pub deallocations: AtomicUsize,
    /// Allocations that the thread's own cache did not serve.
    pub slow: AtomicUsize,
}

/// Adds without an atomic addition, for the one thread that writes.
#[inline]
fn bump(counter: &AtomicUsize) {
    // Relaxed: statistics; readers take whatever they see.
    counter.store(counter.load(Relaxed).wrapping_add(1), Relaxed);
}

impl Counters {
    const fn new() -> Self {
        Self {
            allocations: AtomicUsize::new(0),
            deallocations: AtomicUsize::new(0),
            slow: AtomicUsize::new(0),
        }
    }

    #[inline]
    pub fn allocated(&self) {
        bump(&self.allocations);
    }

    #[inline]
    pub fn deallocated(&self) {
        bump(&self.deallocations);
    }

    pub fn went_slow(&self) {
        bump(&self.slow);
    }
}

/// The regions of one class.
#[derive(Debug)]
struct Stack {
    /// Regions lie below this place; thieves leave gaps. The owner's own.
    top: AtomicUsize,
    places: [AtomicUsize; PLACES],
}

/// The cache of one thread.
#[derive(Debug)]
#[repr(align(128))]
pub struct Slot {
    owned: AtomicBool,
    /// Bytes that the owner has put in and not taken out. The owner's own.
    cached: AtomicUsize,
    /// Bytes of the cap on dirty memory that this slot may fill. The owner's own.
    lease: AtomicUsize,
    /// Bytes that thieves took; the owner subtracts them when it runs short.
    stolen: AtomicUsize,
    stacks: [Stack; CLASSES],
    pub counters: [Counters; CLASSES],
}

impl Slot {
    pub const fn new() -> Self {
        Self {
            owned: AtomicBool::new(false),
            cached: AtomicUsize::new(0),
            lease: AtomicUsize::new(0),
            stolen: AtomicUsize::new(0),
            stacks: [const {
                Stack {
                    top: AtomicUsize::new(0),
                    places: [const { AtomicUsize::new(0) }; PLACES],
                }
            }; CLASSES],
            counters: [const { Counters::new() }; CLASSES],
        }
    }

    /// The most recently freed region of a class. Only the owner calls this.
    #[inline]
    pub fn pop(&self, class: SizeClass) -> Option<Region> {
        let stack = &self.stacks[class.index()];
        // Relaxed: `top` and `cached` are the owner's own.
        let mut top = stack.top.load(Relaxed).min(PLACES);
        while top > 0 {
            top -= 1;
            // Acquire: pairs with the release in `push`, of this thread or the one that owned the
            // slot before it. AcqRel is not needed: the next `push` releases.
            let word = stack.places[top].swap(0, Acquire);
            if word != 0 {
                stack.top.store(top, Relaxed);
                let cached = self.cached.load(Relaxed);
                self.cached
                    .store(cached.wrapping_sub(class.bytes()), Relaxed);
                return Some(Region(word));
            }
        }
        stack.top.store(0, Relaxed);
        None
    }

    /// Keeps a region, if its class has a place and the lease covers it. Only the owner calls this.
    #[inline]
    pub fn push(&self, class: SizeClass, region: Region) -> bool {
        let stack = &self.stacks[class.index()];
        let (top, cached) = (stack.top.load(Relaxed), self.cached.load(Relaxed));
        // `cached` cannot overflow: it is at most the size of the address space.
        if top >= PLACES || cached + class.bytes() > self.lease.load(Relaxed) {
            return false;
        }
        // Release: what this thread did with the region happens before its next user's accesses.
        stack.places[top].store(region.0, Release);
        stack.top.store(top + 1, Relaxed);
        self.cached.store(cached + class.bytes(), Relaxed);
        true
    }

    /// Takes note of thefts; whether there were any.
    pub fn settle(&self) -> bool {
        // Relaxed: a count of bytes, nothing is read on its account.
        let stolen = self.stolen.swap(0, Relaxed);
        self.cached
            .store(self.cached.load(Relaxed).saturating_sub(stolen), Relaxed);
        stolen != 0
    }

    /// Whether the class has a place left.
    pub fn has_place(&self, class: SizeClass) -> bool {
        self.stacks[class.index()].top.load(Relaxed) < PLACES
    }

    pub fn cached(&self) -> usize {
        self.cached.load(Relaxed)
    }

    pub fn lease(&self) -> usize {
        self.lease.load(Relaxed)
    }

    pub fn set_lease(&self, bytes: usize) {
        self.lease.store(bytes, Relaxed);
    }

    /// Takes the region that the owner would use last. Any thread may call this.
    pub fn steal(&self, class: SizeClass) -> Option<Region> {
        for place in &self.stacks[class.index()].places {
            let word = place.load(Relaxed);
            // Acquire: pairs with the release in `push`.
            if word != 0 && place.compare_exchange(word, 0, Acquire, Relaxed).is_ok() {
                // Relaxed: see `settle`.
                self.stolen.fetch_add(class.bytes(), Relaxed);
                return Some(Region(word));
            }
        }
        None
    }

    /// Regions of a class in this cache, as far as anybody can tell.
    pub fn count(&self, class: SizeClass) -> usize {
        let places = &self.stacks[class.index()].places;
        places
            .iter()
            .filter(|place| place.load(Relaxed) != 0)
            .count()
    }

    /// Makes the calling thread the owner of a slot that nobody owns.
    pub fn claim(&self) -> bool {
        // Relaxed first: most slots are taken. AcqRel: pairs with `leave` of the owner before.
        if self.owned.load(Relaxed) || self.owned.swap(true, AcqRel) {
            return false;
        }
        self.recount();
        true
    }

    /// Finds `top` and `cached` from the places: the owner before may have vanished in a fork.
    fn recount(&self) {
        self.stolen.store(0, Relaxed);
        let mut cached = 0;
        for (index, stack) in self.stacks.iter().enumerate() {
            let filled = |place: &AtomicUsize| place.load(Relaxed) != 0;
            let top = stack.places.iter().rposition(filled).map_or(0, |at| at + 1);
            stack.top.store(top, Relaxed);
            let regions = stack.places.iter().filter(|place| filled(place)).count();
            cached += SizeClass::of_index(index).map_or(0, |class| class.bytes() * regions);
        }
        self.cached.store(cached, Relaxed);
    }

    /// Gives the slot up.
    pub fn leave(&self) {
        // Release: pairs with `claim`, which must see the owner's words.
        self.owned.store(false, Release);
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
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::vec::Vec;

    use super::*;
    use crate::class::UNIT;

    const TWO: SizeClass = SizeClass::SMALLEST;

    #[test]
    fn the_owner_gets_the_last_and_a_thief_the_first() {
        let slot = Slot::new();
        assert!(slot.claim() && !slot.claim());
        assert!(
            !slot.push(TWO, Region(UNIT)),
            "a slot without a lease keeps nothing"
        );
        slot.set_lease(3 * UNIT);
        for at in 1..=3 {
            assert!(slot.push(TWO, Region(at * UNIT)));
        }
        assert!(
            !slot.push(TWO, Region(4 * UNIT)),
            "the lease is for three regions"
        );
        assert_eq!(slot.steal(TWO), Some(Region(UNIT)));
        assert!(slot.settle());
        assert!(slot.push(TWO, Region(5 * UNIT)));
        let popped: Vec<_> = std::iter::from_fn(|| slot.pop(TWO)).collect();
        assert_eq!(popped, [5, 3, 2].map(|at| Region(at * UNIT)));
        assert_eq!(slot.cached(), 0);
    }

    /// An owner and three thieves: every region has one holder at a time.
    #[test]
    fn no_region_is_had_twice() {
        const REGIONS: usize = 8;
        let slot = Slot::new();
        let held: [AtomicUsize; REGIONS] = [const { AtomicUsize::new(1) }; REGIONS];
        let take = |region: Region| {
            let before = held[region.start() / UNIT - 1].fetch_add(1, Relaxed);
            assert_eq!(before, 0, "a region had by two");
        };
        let back: [AtomicUsize; REGIONS] = [const { AtomicUsize::new(0) }; REGIONS];
        slot.set_lease(usize::MAX / 2);
        let give = |region: Region| {
            held[region.start() / UNIT - 1].store(0, Relaxed);
            assert!(slot.push(TWO, region));
        };
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !done.load(Relaxed) {
                        if let Some(region) = slot.steal(TWO) {
                            take(region);
                            back[region.start() / UNIT - 1].store(1, Release);
                        }
                    }
                });
            }
            (1..=REGIONS).for_each(|at| give(Region(at * UNIT)));
            for _ in 0..200_000 {
                if let Some(region) = slot.pop(TWO) {
                    take(region);
                    give(region);
                }
                for (at, stolen) in back.iter().enumerate() {
                    if stolen.load(Acquire) == 1 && slot.has_place(TWO) {
                        stolen.store(0, Relaxed);
                        give(Region((at + 1) * UNIT));
                    }
                }
            }
            done.store(true, Relaxed);
        });
    }
}
