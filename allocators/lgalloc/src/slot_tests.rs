//! Tests of one cache: its owner, thieves, and the lease.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::vec::Vec;

use super::*;
use crate::class::{SizeClass, UNIT};
use crate::region::Region;
use crate::sync::can_fence;

const TWO: SizeClass = SizeClass::SMALLEST;

/// Adds room for `regions` regions of 2 MiB to the lease.
fn lend(slot: &Slot, regions: usize) {
    slot.lease.fetch_add(regions * UNIT, Relaxed);
}

#[test]
fn the_owner_gets_the_last_and_a_thief_the_first() {
    let slot = Slot::new();
    assert!(slot.claim() && !slot.claim());
    assert!(
        !slot.push(TWO, Region(UNIT)),
        "a slot without a lease keeps nothing"
    );
    lend(&slot, 3);
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

#[test]
fn the_older_half_makes_room_and_the_rest_keeps_its_order() {
    let slot = Slot::new();
    assert!(slot.claim());
    let mut given = Vec::new();
    assert!(!slot.give_older(TWO, |region| given.push(region)));
    lend(&slot, 6);
    for at in 1..=6 {
        assert!(slot.push(TWO, Region(at * UNIT)));
    }
    assert_eq!(slot.steal(TWO), Some(Region(UNIT)));
    assert!(slot.give_older(TWO, |region| given.push(region)));
    assert_eq!(given, [2, 3, 4].map(|at| Region(at * UNIT)));
    slot.settle();
    assert_eq!(slot.cached(), 2 * UNIT);
    assert!(slot.push(TWO, Region(7 * UNIT)));
    let popped: Vec<_> = std::iter::from_fn(|| slot.pop(TWO)).collect();
    assert_eq!(popped, [7, 6, 5].map(|at| Region(at * UNIT)));
    assert_eq!(slot.cached(), 0);
}

/// Guard that sets a flag when it is dropped, so that threads that wait for the flag end even if
/// the test fails.
struct Raise<'a>(&'a AtomicBool);

impl Drop for Raise<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// With one owner and three thieves, every region has only one holder at a time.
#[test]
fn no_region_is_had_twice() {
    const REGIONS: usize = 8;
    let slot = Slot::new();
    assert!(slot.claim());
    let held: [AtomicUsize; REGIONS] = [const { AtomicUsize::new(1) }; REGIONS];
    let take = |region: Region| {
        let before = held[region.start() / UNIT - 1].fetch_add(1, Relaxed);
        assert_eq!(before, 0, "a region had by two");
    };
    let back: [AtomicUsize; REGIONS] = [const { AtomicUsize::new(0) }; REGIONS];
    lend(&slot, usize::MAX / UNIT / 2);
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
        let _raise = Raise(&done);
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
    });
}

/// Owner and thief never both get the same region, even though the owner uses plain stores when the
/// slot's first thief arrives.
#[test]
fn a_first_theft_and_what_the_owner_takes_exclude_each_other() {
    for _ in 0..200 {
        let slot = Slot::new();
        assert!(slot.claim());
        lend(&slot, 1);
        assert!(slot.push(TWO, Region(UNIT)));
        let (done, gone) = (AtomicBool::new(false), AtomicBool::new(false));
        let steal = || {
            while !done.load(Relaxed) {
                if let Some(region) = slot.steal(TWO) {
                    gone.store(true, Release);
                    return Some(region);
                }
                std::thread::yield_now();
            }
            None
        };
        std::thread::scope(|scope| {
            let _raise = Raise(&done);
            let thief = scope.spawn(steal);
            // The owner puts the region back each time. So after the loop, the region stays in the
            // slot until it is stolen.
            for _ in 0..20_000 {
                let stolen = gone.load(Acquire);
                let Some(region) = slot.pop(TWO) else { break };
                assert!(!stolen, "a region had by two");
                assert!(slot.push(TWO, region));
            }
            let stolen = thief.join().expect("the thief ends well");
            assert_eq!(stolen, Some(Region(UNIT)));
        });
        assert_eq!(slot.pop(TWO), None, "a region had by two");
    }
}

/// Atomic exchanges are expensive, so an owner uses none before the first theft, unless thieves
/// cannot fence its thread.
#[test]
fn a_theft_alone_makes_the_owner_exchange() {
    let slot = Slot::new();
    assert!(slot.claim());
    let exchanges = || [&slot.wanted, &slot.shared].map(|flag| flag.load(Relaxed));
    let before = [!can_fence(); 2];
    lend(&slot, 2);
    assert_eq!(slot.steal(TWO), None);
    assert!(slot.push(TWO, Region(UNIT)) && slot.pop(TWO).is_some());
    assert_eq!(slot.steal(TWO), None);
    assert_eq!(exchanges(), before, "nothing was there to be stolen");
    assert!(slot.push(TWO, Region(UNIT)) && slot.steal(TWO).is_some());
    assert_eq!(exchanges(), [true; 2]);
}

/// The test acts as an owner that is suspended in the middle of `pop`.
#[test]
fn what_the_owner_is_taking_is_not_stolen() {
    let slot = Slot::new();
    assert!(slot.claim());
    if !can_fence() {
        return;
    }
    lend(&slot, 2);
    assert!(slot.push(TWO, Region(UNIT)) && slot.push(TWO, Region(2 * UNIT)));
    slot.taking.store(UNIT, Relaxed);
    assert_eq!(slot.steal(TWO), Some(Region(2 * UNIT)));
    assert_eq!(slot.steal(TWO), None);
    slot.abandon();
    assert_eq!(slot.steal(TWO), Some(Region(UNIT)), "it vanished in a fork");
}

#[test]
fn what_a_lease_does_not_use_can_be_revoked() {
    let cap = Cap {
        held: AtomicUsize::new(0),
    };
    let slot = Slot::new();
    assert!(slot.claim());
    assert!(slot.borrow(TWO, 8 * UNIT, &cap, 8 * UNIT));
    assert!(slot.push(TWO, Region(UNIT)));
    let held = cap.held();
    assert!(held > UNIT, "more than is needed at once");
    slot.revoke(&cap);
    assert_eq!((cap.held(), slot.lease()), (UNIT, UNIT));
    assert!(!slot.push(TWO, Region(3 * UNIT)), "the lease is used up");
    assert!(slot.pop(TWO).is_some());
    assert!(slot.push(TWO, Region(3 * UNIT)), "the place was paid for");
    slot.end_lease(&cap);
    assert_eq!((cap.held(), slot.held()), (0, UNIT));
}

#[test]
fn neither_budget_nor_cap_is_exceeded() {
    let cap = Cap {
        held: AtomicUsize::new(0),
    };
    let slot = Slot::new();
    assert!(!slot.borrow(TWO, UNIT / 2, &cap, usize::MAX), "the budget");
    assert!(!slot.borrow(TWO, usize::MAX, &cap, UNIT / 2), "the cap");
    for at in 1..=3 {
        let fits = slot.push(TWO, Region(at * UNIT));
        let lent = fits || slot.borrow(TWO, 3 * UNIT, &cap, 3 * UNIT);
        assert!(lent && (fits || slot.push(TWO, Region(at * UNIT))));
    }
    assert!(!slot.borrow(TWO, 3 * UNIT, &cap, usize::MAX));
    assert_eq!((cap.held(), slot.lease()), (3 * UNIT, 3 * UNIT));
}

#[test]
fn only_regions_that_are_wanted_are_stolen() {
    let slot = Slot::new();
    assert!(slot.claim());
    lend(&slot, 4);
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
    lend(&slot, 4);
    (1..=3).for_each(|at| assert!(slot.push(TWO, Region(at * UNIT))));
    assert!(slot.steal(TWO).is_some());
    slot.leave();
    assert!(slot.claim());
    assert_eq!(slot.cached(), 2 * UNIT);
    assert_eq!(slot.pop(TWO), Some(Region(3 * UNIT)));
}
