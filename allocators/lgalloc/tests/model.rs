//! Model checks of shared state with loom. Models of two threads with few steps run in every order
//! of these steps. Models with more threads or steps run only in the orders with few preemptions.
//!
//! This test compiles some of the library's files against loom's atomics, with two places in a
//! cache. Loom also detects unordered accesses to a region's contents.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::Ordering::Acquire;
use loom::thread;

mod sync {
    use loom::sync::atomic::Ordering::SeqCst;
    use loom::sync::{Mutex, MutexGuard};

    pub use loom::sync::atomic::{AtomicBool, AtomicUsize, fence};

    /// Executes loom's full fence. It is stronger than the two halves, because it also acquires and
    /// releases all earlier accesses. So the model cannot detect an ordering that is missing
    /// elsewhere in `pop`.
    pub fn light_fence() {
        fence(SeqCst);
    }

    pub fn heavy_fence() -> bool {
        fence(SeqCst);
        true
    }

    pub fn can_fence() -> bool {
        true
    }

    /// Replacement for the library's lock.
    #[derive(Debug)]
    pub struct Lock<T>(Mutex<T>);

    impl<T> Lock<T> {
        pub fn new(value: T) -> Self {
            Self(Mutex::new(value))
        }

        pub fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().expect("no holder fails")
        }
    }
}

/// Replacement constants: one class with two places, two caches, and a table of two regions. The
/// unit is that of the library.
mod class {
    pub const UNIT: usize = 1 << 21;
    pub const CLASSES: usize = 1;
    pub const PLACES: usize = 2;
    pub const SLOTS: usize = 2;
    pub const ENTRIES: usize = 2;

    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub struct SizeClass;

    impl SizeClass {
        pub const SMALLEST: Self = Self;

        pub fn of_index(index: usize) -> Option<Self> {
            (index == 0).then_some(Self)
        }

        pub fn index(self) -> usize {
            0
        }

        pub fn bytes(self) -> usize {
            UNIT
        }
    }
}

#[allow(dead_code, reason = "the models use part of it")]
#[path = "../src/cap.rs"]
mod cap;
#[allow(dead_code, reason = "the models use part of it")]
#[path = "../src/dirty.rs"]
mod dirty;
#[allow(dead_code, reason = "the models use part of it")]
#[path = "../src/region.rs"]
mod region;
#[allow(dead_code, reason = "the models use part of it")]
#[path = "../src/shared.rs"]
mod shared;
#[path = "model/shared.rs"]
mod shared_models;
#[allow(dead_code, reason = "the models use part of it")]
#[path = "../src/slot.rs"]
mod slot;

use cap::Cap;
use class::{PLACES, SizeClass, UNIT};
use region::Region;
use slot::{Counters, Slot, Stack};
use sync::{AtomicBool, AtomicUsize};

const CLASS: SizeClass = SizeClass;

/// Runs a model in every order with at most three preemptions, because all orders would take
/// minutes.
fn model_of_many(body: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(body);
}

fn empty_slot() -> Slot {
    let zero = || AtomicUsize::new(0);
    Slot {
        owned: AtomicBool::new(false),
        clock: zero(),
        cached: zero(),
        lease: zero(),
        taking: zero(),
        wanted: AtomicBool::new(false),
        shared: AtomicBool::new(false),
        robbed: AtomicBool::new(false),
        stacks: [Stack {
            top: zero(),
            places: [(); PLACES].map(|()| zero()),
        }],
        counters: [Counters {
            allocations: zero(),
            deallocations: zero(),
            slow: zero(),
        }],
    }
}

/// Model with a cache, a cap, and the contents of regions 1, 2 and 3.
struct World {
    slot: Slot,
    cap: Cap,
    contents: [UnsafeCell<usize>; 3],
}

// SAFETY: loom detects unordered accesses to the contents.
unsafe impl Sync for World {}
// SAFETY: loom detects unordered accesses to the contents.
unsafe impl Send for World {}

impl World {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            slot: empty_slot(),
            cap: Cap {
                held: AtomicUsize::new(0),
            },
            contents: [(); 3].map(|()| UnsafeCell::new(0)),
        })
    }

    /// Writes to the contents, like a user of the region.
    fn write(&self, region: usize) {
        // SAFETY: the caller owns the region, and loom detects other accesses.
        self.contents[region - 1].with_mut(|contents| unsafe { *contents += 1 });
    }

    /// Frees a region as a thread does. Returns false if the cache has no room for it.
    fn put(&self, region: usize, most: usize) -> bool {
        self.write(region);
        let region = Region(region * UNIT);
        if self.slot.push(CLASS, region) {
            return true;
        }
        self.slot.settle();
        self.slot.borrow(CLASS, 2 * UNIT, &self.cap, most) && self.slot.push(CLASS, region)
    }

    /// Writes to a region that was taken, and returns its number.
    fn used(&self, region: Region) -> usize {
        let number = region.start() / UNIT;
        self.write(number);
        number
    }

    fn pop(&self) -> Option<usize> {
        Some(self.used(self.slot.pop(CLASS)?))
    }

    fn steal(&self) -> Option<usize> {
        Some(self.used(self.slot.steal(CLASS)?))
    }
}

/// Every region has only one holder at a time, no region is lost, and each handover orders accesses
/// to the contents.
#[test]
fn an_owner_and_a_thief_share_regions_without_a_lock() {
    loom::model(|| {
        let world = World::new();
        assert!(world.slot.claim());
        let thief = thread::spawn({
            let world = Arc::clone(&world);
            move || world.steal()
        });
        assert!(world.put(1, usize::MAX) && world.put(2, usize::MAX));
        let popped = world.pop();
        // The owner fills the place again while the thief reads it.
        let again = popped.is_some_and(|region| world.put(region, usize::MAX));
        let stolen = thief.join().expect("the thief ends well");
        let mut all: Vec<usize> = stolen.into_iter().collect();
        if !again {
            all.extend(popped);
        }
        all.extend(std::iter::from_fn(|| world.pop()));
        all.sort_unstable();
        assert_eq!(all, [1, 2]);
    });
}

/// Either the thief gets the region, or the owner pops it and puts it back, and a later theft
/// succeeds.
#[test]
fn no_region_is_held_back_from_thieves() {
    loom::model(|| {
        let world = World::new();
        assert!(world.slot.claim());
        assert!(world.put(1, usize::MAX));
        let thief = thread::spawn({
            let world = Arc::clone(&world);
            move || world.steal()
        });
        let kept = world
            .pop()
            .is_some_and(|region| world.put(region, usize::MAX));
        let stolen = thief.join().expect("the thief ends well");
        let left = world.steal();
        assert!(stolen.is_some() != left.is_some());
        assert!(left.is_none() || kept);
    });
}

/// A later thief relies on an earlier thief's fence.
#[test]
fn a_second_thief_needs_no_fence_of_its_own() {
    model_of_many(|| {
        let world = World::new();
        assert!(world.slot.claim());
        assert!(world.put(1, usize::MAX) && world.put(2, usize::MAX));
        let first = thread::spawn({
            let world = Arc::clone(&world);
            move || world.steal()
        });
        let second = thread::spawn({
            let world = Arc::clone(&world);
            move || {
                let shared = world.slot.shared.load(Acquire);
                shared.then(|| world.steal()).flatten()
            }
        });
        let own = world.pop();
        let stolen = [first, second].map(|thief| thief.join().expect("the thief ends well"));
        let left = std::iter::from_fn(|| world.pop()).count();
        let holders = stolen.into_iter().chain([own]).flatten().count();
        assert_eq!(holders + left, 2);
    });
}

/// The owner moves its regions while a thief reads them.
#[test]
fn what_makes_room_is_lost_to_nobody() {
    loom::model(|| {
        let world = World::new();
        assert!(world.slot.claim());
        assert!(world.put(1, usize::MAX) && world.put(2, usize::MAX));
        let thief = thread::spawn({
            let world = Arc::clone(&world);
            move || world.steal()
        });
        let mut all = Vec::new();
        world
            .slot
            .give_older(CLASS, |region| all.push(world.used(region)));
        let third = world.put(3, usize::MAX);
        all.extend(thief.join().expect("the thief ends well"));
        all.extend(std::iter::from_fn(|| world.pop()));
        all.sort_unstable();
        assert_eq!(all, if third { &[1, 2, 3][..] } else { &[1, 2] });
    });
}

#[test]
fn two_thieves_never_get_the_same_region() {
    model_of_many(|| {
        let world = World::new();
        assert!(world.slot.claim());
        assert!(world.put(1, usize::MAX));
        let thieves = [(); 2].map(|()| {
            let world = Arc::clone(&world);
            thread::spawn(move || world.steal())
        });
        let own = world.pop();
        let stolen = thieves.map(|thief| thief.join().expect("the thief ends well"));
        let holders = stolen.into_iter().chain([own]).flatten().count();
        assert_eq!(holders, 1);
    });
}

/// In every order, the cap is never exceeded, it counts all leases, and the next free borrows for a
/// region that a revocation missed.
#[test]
fn a_lease_that_is_revoked_meanwhile_is_paid_for_again() {
    loom::model(|| {
        let world = World::new();
        assert!(world.slot.claim());
        assert!(world.put(1, 2 * UNIT));
        let other = thread::spawn({
            let world = Arc::clone(&world);
            move || {
                let stolen = world.steal();
                world.slot.revoke(&world.cap);
                stolen
            }
        });
        let kept = world.put(2, 2 * UNIT);
        let stolen = other.join().expect("the other ends well");
        assert_eq!(world.cap.held(), world.slot.lease());
        assert!(world.cap.held() <= 2 * UNIT);
        assert!(world.slot.held() <= world.slot.lease() + UNIT);
        let third = kept && world.put(3, 2 * UNIT);
        if third {
            assert!(world.slot.held() <= world.slot.lease());
        }
        assert_eq!(world.cap.held(), world.slot.lease());
        let left = std::iter::from_fn(|| world.pop()).count();
        let put = 1 + usize::from(kept) + usize::from(third);
        assert_eq!(left + usize::from(stolen.is_some()), put);
    });
}

/// The owner borrows while another thread recounts the owner's regions. The lease covers these
/// regions only once, within the budget.
#[test]
fn what_is_counted_again_is_not_lent_twice() {
    loom::model(|| {
        let world = World::new();
        assert!(world.slot.claim());
        // The cap has room even for bytes that are lent twice: a refusal would hide the error.
        let most = 8 * UNIT;
        assert!(world.put(1, most));
        let other = thread::spawn({
            let world = Arc::clone(&world);
            move || world.slot.revoke(&world.cap)
        });
        world.put(2, most);
        other.join().expect("the other ends well");
        let lease = world.slot.lease();
        assert!(lease <= 2 * UNIT, "{lease} bytes are beyond the budget");
        assert_eq!(world.cap.held(), lease);
    });
}

/// A slot may hold more than its lease covers, and one thread may end the lease while another
/// revokes it. The cap must get back only bytes that it has counted.
#[test]
fn no_lease_is_given_back_before_it_is_counted() {
    loom::model(|| {
        let world = World::new();
        assert!(world.slot.claim());
        assert!(world.put(1, 2 * UNIT));
        world.slot.end_lease(&world.cap);
        let other = thread::spawn({
            let world = Arc::clone(&world);
            move || world.slot.revoke(&world.cap)
        });
        world.slot.end_lease(&world.cap);
        assert!(world.cap.held() <= UNIT, "{}", world.cap.held());
        other.join().expect("the other ends well");
        assert_eq!(world.cap.held(), world.slot.lease());
    });
}

/// A new thread takes over the cache of an ended thread.
#[test]
fn a_slot_changes_hands_with_what_is_in_it() {
    loom::model(|| {
        let world = World::new();
        assert!(world.slot.claim());
        let next = thread::spawn({
            let world = Arc::clone(&world);
            move || {
                let claimed = world.slot.claim();
                let found = claimed.then(|| (world.slot.cached(), world.pop()));
                found.map(|(cached, popped)| (cached / UNIT, popped))
            }
        });
        assert!(world.put(1, usize::MAX));
        world.slot.leave();
        let found = next.join().expect("the next ends well");
        assert!(matches!(found, None | Some((1, Some(1)))), "{found:?}");
    });
}
