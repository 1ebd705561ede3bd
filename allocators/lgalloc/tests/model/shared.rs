//! Models of caches, table and cap together. The threads' steps have too many orders to try all, so
//! the number of preemptions is limited.

use core::sync::atomic::Ordering::Relaxed;
use std::sync::Mutex;

use loom::cell::UnsafeCell;
use loom::model::Builder;
use loom::sync::Arc;
use loom::thread::{self, JoinHandle};

use crate::cap::Cap;
use crate::class::{SLOTS, SizeClass, UNIT};
use crate::dirty::Dirty;
use crate::region::Region;
use crate::shared::{Policy, Shared};
use crate::slot::Slot;
use crate::sync::{AtomicUsize, Lock};
use crate::{CLASS, empty_slot};

/// Settings, contents of regions 1 to 3, and the numbers of the cleaned regions.
struct Rules {
    budget: AtomicUsize,
    most: AtomicUsize,
    contents: [UnsafeCell<usize>; 3],
    /// Not a loom type, because the order of the numbers does not matter.
    cleaned: Mutex<Vec<usize>>,
}

// SAFETY: loom itself detects accesses to the contents that are not ordered.
unsafe impl Sync for Rules {}
// SAFETY: loom itself detects accesses to the contents that are not ordered.
unsafe impl Send for Rules {}

impl Rules {
    /// Writes to the contents as a user of the region would, and returns the region's number.
    fn write(&self, region: Region) -> usize {
        let number = region.start() / UNIT;
        // SAFETY: the caller holds the region; loom checks that no other thread does.
        self.contents[number - 1].with_mut(|contents| unsafe { *contents += 1 });
        number
    }
}

impl Policy for Rules {
    fn budget(&self) -> usize {
        self.budget.load(Relaxed)
    }

    fn most(&self) -> usize {
        self.most.load(Relaxed)
    }

    fn clean(&self, region: Region, _: SizeClass) {
        let number = self.write(region);
        let mut cleaned = self.cleaned.lock().expect("no holder fails");
        cleaned.push(number);
    }
}

type World = Shared<Rules>;

impl World {
    /// Creates a state whose budget and cap are these numbers of regions.
    fn new(budget: usize, most: usize) -> Arc<Self> {
        let zero = || AtomicUsize::new(0);
        Arc::new(Self {
            policy: Rules {
                budget: AtomicUsize::new(budget * UNIT),
                most: AtomicUsize::new(most * UNIT),
                contents: [(); 3].map(|()| UnsafeCell::new(0)),
                cleaned: Mutex::default(),
            },
            slots: [(); SLOTS].map(|()| empty_slot()),
            claimed: zero(),
            dirty: Lock::new(Dirty::new()),
            cap: Cap { held: zero() },
        })
    }

    /// Frees a region as a thread without a cache does.
    fn free_beyond(&self, number: usize) {
        let region = Region(number * UNIT);
        self.policy.write(region);
        self.put(region, CLASS);
    }

    /// Frees a region as the owner of a slot does.
    fn free(&self, slot: &Slot, number: usize) {
        let region = Region(number * UNIT);
        self.policy.write(region);
        if !slot.push(CLASS, region) {
            self.put_by_owner(slot, region, CLASS);
        }
    }

    fn taken(&self) -> Option<usize> {
        Some(self.policy.write(self.take(CLASS)?))
    }

    /// Asserts that the cap counts the bytes in the table plus all leases.
    fn check(&self) {
        let in_table = self.dirty.lock().count(CLASS) * UNIT;
        let lent: usize = self.slots.iter().map(Slot::lease).sum();
        assert_eq!(self.cap.held(), in_table + lent);
    }

    /// Takes all free regions. Returns their numbers, those of the cleaned regions, and `held`, the
    /// regions that the caller holds, in ascending order.
    fn all(&self, held: impl IntoIterator<Item = usize>) -> Vec<usize> {
        let mut all = self.policy.cleaned.lock().expect("no holder fails").clone();
        all.extend(held);
        all.extend(std::iter::from_fn(|| self.taken()));
        all.sort_unstable();
        all
    }
}

/// Runs a model with at most `interruptions` preemptions.
fn explore(interruptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(interruptions);
    builder.check(model);
}

fn spawn<T: 'static>(world: &Arc<World>, act: impl FnOnce(&World) -> T + 'static) -> JoinHandle<T> {
    let world = Arc::clone(world);
    thread::spawn(move || act(&world))
}

fn end<T>(thread: JoinHandle<T>) -> T {
    thread.join().expect("the thread ends well")
}

#[test]
fn what_is_freed_beyond_the_cap_is_neither_lost_nor_doubled() {
    explore(2, || {
        let world = World::new(0, 1);
        world.free_beyond(3);
        let threads = [1, 2].map(|number| spawn(&world, move |world| world.free_beyond(number)));
        world.empty();
        threads.into_iter().for_each(end);
        assert!(world.cap.held() <= UNIT);
        world.check();
        assert_eq!(world.all([]), [1, 2, 3]);
    });
}

#[test]
fn a_region_is_taken_while_its_owner_frees_others() {
    explore(2, || {
        let world = World::new(2, 2);
        let slot = world.claim().expect("a slot");
        world.free(slot, 1);
        let thief = spawn(&world, World::taken);
        world.free(slot, 2);
        world.free(slot, 3);
        let stolen = end(thief);
        world.check();
        assert_eq!(world.all(stolen), [1, 2, 3]);
    });
}

#[test]
fn a_region_is_taken_while_its_owner_leaves() {
    explore(3, || {
        let world = World::new(2, 2);
        let slot = world.claim().expect("a slot");
        world.free(slot, 1);
        world.free(slot, 2);
        let thief = spawn(&world, World::taken);
        world.leave(slot);
        let stolen = end(thief);
        assert_eq!(slot.lease(), 0);
        world.check();
        assert_eq!(world.all(stolen), [1, 2]);
    });
}

#[test]
fn old_regions_are_emptied_while_their_owner_frees() {
    explore(2, || {
        let world = World::new(2, 2);
        let slot = world.claim().expect("a slot");
        world.free(slot, 1);
        let other = spawn(&world, |world| {
            world.empty_of(|region| region.start() == UNIT)
        });
        world.free(slot, 2);
        end(other);
        world.check();
        world.free(slot, 3);
        assert!(
            slot.held() <= slot.lease(),
            "what was missed is not paid for"
        );
        assert_eq!(world.all([]), [1, 2, 3]);
    });
}

/// A lowered cap is enforced even if the owner has read the old settings.
#[test]
fn a_lowered_cap_holds() {
    explore(2, || {
        let world = World::new(2, 2);
        let slot = world.claim().expect("a slot");
        let other = spawn(&world, |world| {
            world.policy.most.store(UNIT, Relaxed);
            world.hold_to_policy();
        });
        world.free(slot, 1);
        world.free(slot, 2);
        end(other);
        world.check();
        assert!(world.cap.held() <= UNIT, "{} bytes", world.cap.held());
        world.free(slot, 3);
        world.check();
        assert!(world.cap.held() <= UNIT, "{} bytes", world.cap.held());
        assert!(
            slot.held() <= slot.lease(),
            "what came on top is still there"
        );
        assert_eq!(world.all([]), [1, 2, 3]);
    });
}

/// A lowered cap is enforced even if a thread without a cache has read the old cap.
#[test]
fn a_lowered_cap_holds_for_the_table() {
    explore(2, || {
        let world = World::new(0, 2);
        let other = spawn(&world, |world| {
            world.policy.most.store(UNIT, Relaxed);
            world.hold_to_policy();
        });
        world.free_beyond(1);
        world.free_beyond(2);
        end(other);
        world.check();
        assert!(world.cap.held() <= UNIT, "{} bytes", world.cap.held());
        assert_eq!(world.all([]), [1, 2]);
    });
}

#[test]
fn a_lowered_budget_holds() {
    explore(2, || {
        let world = World::new(2, 3);
        let slot = world.claim().expect("a slot");
        let other = spawn(&world, |world| {
            world.policy.budget.store(UNIT, Relaxed);
            world.hold_to_policy();
        });
        world.free(slot, 1);
        world.free(slot, 2);
        end(other);
        world.check();
        assert!(slot.lease() <= UNIT, "{} bytes", slot.lease());
        world.free(slot, 3);
        world.check();
        assert!(slot.held() <= slot.lease() && slot.lease() <= UNIT);
        assert_eq!(world.all([]), [1, 2, 3]);
    });
}
