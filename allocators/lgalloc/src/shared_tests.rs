//! Tests of caches, table and cap together: the places of regions, the cleaned regions, and the
//! counts.

use core::sync::atomic::Ordering::Relaxed;
use std::sync::Mutex;

use super::*;
use crate::class::{SizeClass, UNIT};
use crate::region::Region;
use crate::shared::Policy;

const TWO: SizeClass = SizeClass::SMALLEST;

/// Settings of a test, and the units of the cleaned regions.
struct Rules {
    budget: AtomicUsize,
    most: AtomicUsize,
    cleaned: Mutex<Vec<usize>>,
}

impl Policy for Rules {
    fn budget(&self) -> usize {
        self.budget.load(Relaxed)
    }

    fn most(&self) -> usize {
        self.most.load(Relaxed)
    }

    fn clean(&self, region: Region, class: SizeClass) {
        let first = region.start() / UNIT;
        let mut cleaned = self.cleaned.lock().expect("no test fails meanwhile");
        cleaned.extend(first..first + class.bytes() / UNIT);
    }
}

/// Creates a state like the process's, but with a budget of 16 units and a cap of 64.
const fn shared() -> Shared<Rules> {
    Shared::new(Rules {
        budget: AtomicUsize::new(16 * UNIT),
        most: AtomicUsize::new(64 * UNIT),
        cleaned: Mutex::new(Vec::new()),
    })
}

impl Shared<Rules> {
    fn cleaned(&self) -> Vec<usize> {
        core::mem::take(&mut *self.policy.cleaned.lock().expect("no test fails meanwhile"))
    }

    /// Frees 2 MiB on the slow path of a slot's owner.
    fn free(&self, slot: &Slot, unit: usize, time: u64) {
        self.put_by_owner(slot, Region::new(unit * UNIT, time), TWO);
    }

    fn taken(&self) -> Option<usize> {
        Some(self.take(TWO)?.start() / UNIT)
    }

    /// Asserts that the cap counts the bytes in the table plus all leases, and that no slot holds
    /// more than its lease.
    fn check(&self) {
        let classes = (0..CLASSES).filter_map(SizeClass::of_index);
        let table = self.dirty.lock();
        let in_table: usize = classes
            .map(|class| class.bytes() * table.count(class))
            .sum();
        let lent: usize = self.slots.iter().map(Slot::lease).sum();
        assert_eq!(self.cap.held(), in_table + lent);
        assert!(self.slots.iter().all(|slot| slot.held() <= slot.lease()));
    }
}

#[test]
fn the_table_is_looked_at_before_caches_and_only_caches_that_were_claimed() {
    static SHARED: Shared<Rules> = shared();
    assert!(SHARED.claimed().is_empty());
    // In a program this place is always empty, because no thread has claimed the slot.
    SHARED.slots[7].stacks[0].places[0].store(99 * UNIT, Relaxed);
    assert_eq!(SHARED.taken(), None);
    let slots = [(); 3].map(|()| SHARED.claim().expect("a slot"));
    assert_eq!(SHARED.claimed().len(), 3);
    SHARED.free(slots[2], 5, 0);
    SHARED.put(Region::new(6 * UNIT, 0), TWO);
    assert_eq!(SHARED.taken(), Some(6));
    assert_eq!(SHARED.taken(), Some(5));
    assert_eq!(SHARED.taken(), None);
    slots.into_iter().for_each(|slot| SHARED.leave(slot));
    assert_eq!(SHARED.cap.held(), 0);
    assert!(SHARED.claim().is_some());
    assert_eq!(SHARED.claimed().len(), 3, "the first is claimed again");
}

#[test]
fn what_does_not_fit_under_the_cap_displaces_the_oldest() {
    static SHARED: Shared<Rules> = shared();
    SHARED.policy.most.store(3 * UNIT, Relaxed);
    for unit in 1..=5 {
        SHARED.put(Region::new(unit * UNIT, 0), TWO);
        SHARED.check();
    }
    assert_eq!(SHARED.cleaned(), [1, 2]);
    let class = SizeClass::of_bytes(4 * UNIT).expect("a class");
    SHARED.put(Region::new(8 * UNIT, 0), class);
    assert_eq!(SHARED.cleaned(), [8, 9, 10, 11], "no room would suffice");
    assert_eq!(SHARED.cap.held(), 3 * UNIT);
}

#[test]
fn a_full_cache_gives_its_older_half_to_the_table() {
    static SHARED: Shared<Rules> = shared();
    let slot = SHARED.claim().expect("a slot");
    (1..=17).for_each(|unit| SHARED.free(slot, unit, 0));
    SHARED.check();
    let table = SHARED.dirty.lock().count(TWO);
    assert_eq!((table, slot.count(TWO)), (8, 9));
    assert_eq!(slot.pop(TWO), Some(Region(17 * UNIT)));
    assert_eq!(SHARED.taken(), Some(8), "the youngest of the older half");
}

#[test]
fn only_what_is_old_is_emptied() {
    static SHARED: Shared<Rules> = shared();
    let slot = SHARED.claim().expect("a slot");
    for (unit, time) in [(1, 800), (2, 8000), (3, 800)] {
        SHARED.free(slot, unit, time);
        SHARED.put(Region::new((unit + 10) * UNIT, time), TWO);
    }
    SHARED.empty_of(|region| region.age(9600) >= 5000);
    assert_eq!(SHARED.cleaned(), [1, 3, 11]);
    SHARED.check();
    assert_eq!(slot.lease(), UNIT, "what is not used is taken back");
    SHARED.empty();
    assert_eq!(SHARED.cleaned(), [2, 12, 13]);
    SHARED.check();
    assert_eq!(SHARED.cap.held(), 0);
}

/// The fork interrupts other threads at any step: between a lease and its count, or in the middle
/// of a theft.
#[test]
fn the_child_of_a_fork_counts_anew_what_is_held() {
    static SHARED: Shared<Rules> = shared();
    let [own, other, third] = [(); 3].map(|()| SHARED.claim().expect("a slot"));
    (1..=3).for_each(|unit| SHARED.free(own, unit, 0));
    (11..=13).for_each(|unit| SHARED.free(other, unit, 0));
    SHARED.put(Region::new(21 * UNIT, 0), TWO);
    SHARED.cap.admit(5 * UNIT);
    third.lease.store(7 * UNIT, Relaxed);
    own.stacks[0].places[0].store(0, Relaxed);
    SHARED.outlive_fork(Some(own));
    let leases = [own, other, third].map(|slot| slot.lease() / UNIT);
    assert_eq!((leases, SHARED.cap.held()), ([0, 3, 0], 4 * UNIT));
    SHARED.free(own, 4, 0);
    SHARED.check();
    assert_eq!(own.lease(), 3 * UNIT, "what it holds is paid for");
    assert_eq!(std::iter::from_fn(|| own.pop(TWO)).count(), 3);
    assert_eq!([SHARED.taken(), SHARED.taken()], [Some(21), Some(11)]);
    SHARED.check();
    assert_eq!(other.lease(), 2 * UNIT, "what was taken is not covered");
    let next = SHARED.claim().expect("a slot");
    assert!(core::ptr::eq(next, other), "it goes to the next thread");
    assert_eq!(next.cached(), 2 * UNIT);
}

#[test]
fn a_lowered_cap_is_met_by_the_table_first() {
    static SHARED: Shared<Rules> = shared();
    let slot = SHARED.claim().expect("a slot");
    SHARED.free(slot, 1, 0);
    SHARED.free(slot, 2, 0);
    (11..=14).for_each(|unit| SHARED.put(Region::new(unit * UNIT, 0), TWO));
    SHARED.policy.most.store(4 * UNIT, Relaxed);
    SHARED.hold_to_policy();
    assert_eq!(SHARED.cleaned(), [11, 12]);
    SHARED.policy.most.store(UNIT, Relaxed);
    SHARED.hold_to_policy();
    assert_eq!(SHARED.cleaned(), [13, 14, 1, 2]);
    SHARED.check();
    assert_eq!(SHARED.cap.held(), 0);
}

#[test]
fn a_lowered_budget_moves_what_is_cached_to_the_table() {
    static SHARED: Shared<Rules> = shared();
    let [large, small] = [(); 2].map(|()| SHARED.claim().expect("a slot"));
    (1..=6).for_each(|unit| SHARED.free(large, unit, 0));
    SHARED.free(small, 11, 0);
    SHARED.policy.budget.store(2 * UNIT, Relaxed);
    SHARED.hold_to_policy();
    SHARED.check();
    assert_eq!((large.lease(), large.held()), (0, 0));
    assert_eq!(
        small.held(),
        UNIT,
        "it has borrowed no more than is allowed"
    );
    assert_eq!(SHARED.dirty.lock().count(TWO), 6);
    assert_eq!(SHARED.cleaned(), [0; 0]);
    (1..=6).for_each(|unit| SHARED.free(large, unit + 20, 0));
    SHARED.check();
    assert!(
        large.lease() <= 2 * UNIT,
        "it borrows within its budget again"
    );
}
