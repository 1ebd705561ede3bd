//! One cache: what its owner does, what thieves do, and what becomes of the lease.

use std::sync::atomic::{AtomicBool, AtomicUsize};
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
    slot.extend_lease(3 * UNIT);
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
    slot.extend_lease(usize::MAX / 2);
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

#[test]
fn what_a_lease_does_not_use_can_be_revoked() {
    let slot = Slot::new();
    assert!(slot.claim());
    slot.extend_lease(4 * UNIT);
    assert!(slot.push(TWO, Region(UNIT)) && slot.push(TWO, Region(2 * UNIT)));
    assert_eq!(slot.revoke(), (4 * UNIT, 2 * UNIT));
    assert!(!slot.push(TWO, Region(3 * UNIT)), "the lease is used up");
    assert!(slot.pop(TWO).is_some());
    assert!(slot.push(TWO, Region(3 * UNIT)), "the place was paid for");
    assert_eq!((slot.end_lease(), slot.held()), (2 * UNIT, 2 * UNIT));
}

#[test]
fn only_regions_that_are_wanted_are_stolen() {
    let slot = Slot::new();
    slot.extend_lease(4 * UNIT);
    for (at, freed) in [(1, 9000), (2, 100), (3, 9000)] {
        assert!(slot.push(TWO, Region::new(at * UNIT, freed)));
    }
    let old = |region: Region| region.age(10_000) > 5000;
    assert_eq!(slot.steal_if(TWO, old).map(Region::start), Some(2 * UNIT));
    assert_eq!(slot.steal_if(TWO, old), None);
    assert_eq!(slot.count(TWO), 2);
}

#[test]
fn a_new_owner_counts_what_the_one_before_left() {
    let slot = Slot::new();
    assert!(slot.claim());
    slot.extend_lease(4 * UNIT);
    (1..=3).for_each(|at| assert!(slot.push(TWO, Region(at * UNIT))));
    assert!(slot.steal(TWO).is_some());
    slot.leave();
    assert!(slot.claim());
    assert_eq!(slot.cached(), 2 * UNIT);
    assert_eq!(slot.pop(TWO), Some(Region(3 * UNIT)));
}
