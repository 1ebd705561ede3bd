//! Free regions with contents, wherever they are: in the caches of threads, or in a table for all
//! of them. One cap covers both: what is counted as held is what the table holds and what the
//! caches have borrowed.

use core::sync::atomic::Ordering::{Relaxed, SeqCst};

use crate::cap::Cap;
use crate::class::{CLASSES, PLACES, SLOTS, SizeClass};
use crate::dirty::Dirty;
use crate::region::Region;
use crate::slot::Slot;
use crate::sync::{AtomicUsize, Lock, fence};

/// What is decided elsewhere.
pub trait Policy {
    /// What one cache may keep, in bytes.
    fn budget(&self) -> usize;

    /// What may be dirty in all, in bytes.
    fn most(&self) -> usize;

    /// Takes a region that may not be kept: its contents go back to the system.
    fn clean(&self, region: Region, class: SizeClass);
}

/// Caches, table and cap.
#[derive(Debug)]
pub struct Shared<P> {
    pub(crate) policy: P,
    pub(crate) slots: [Slot; SLOTS],
    /// Slots from this one on were never claimed.
    pub(crate) claimed: AtomicUsize,
    pub(crate) dirty: Lock<Dirty>,
    pub(crate) cap: Cap,
}

impl<P: Policy> Shared<P> {
    /// A slot for the calling thread.
    pub fn claim(&self) -> Option<&Slot> {
        let mut slots = self.slots.iter().enumerate();
        slots.find_map(|(at, slot)| {
            // First, so that the child of a fork finds a slot that was just being claimed. Relaxed:
            // whoever does not see it yet misses a cache that has just begun; that its lease is not
            // missed where settings are lowered is for the fence in `lend`, which comes later.
            self.claimed.fetch_max(at + 1, Relaxed);
            slot.claim().then_some(slot)
        })
    }

    /// The slots that may hold anything: as many as there ever were threads at a time.
    pub fn claimed(&self) -> &[Slot] {
        &self.slots[..self.claimed.load(Relaxed)]
    }

    /// A region that somebody has freed.
    pub fn take(&self, class: SizeClass) -> Option<Region> {
        let found = self.dirty.lock().take(class, &self.cap);
        found.or_else(|| {
            let mut slots = self.claimed().iter();
            slots.find_map(|slot| self.steal(slot, class))
        })
    }

    /// Takes a region of a cache.
    fn steal(&self, slot: &Slot, class: SizeClass) -> Option<Region> {
        let found = slot.steal(class)?;
        if !slot.is_owned() {
            // The owner was lost in a fork: nobody else would give back what is covered no more.
            slot.revoke(&self.cap);
        }
        Some(found)
    }

    /// Takes a region into the table; older ones make room where there is none.
    pub fn put(&self, region: Region, class: SizeClass) {
        loop {
            let mut dirty = self.dirty.lock();
            // Under the lock: who lowers it takes the lock later, and looks at what is held then.
            let most = self.policy.most();
            let fits = class.bytes() <= most;
            if fits && dirty.keep(region, class, &self.cap, most) {
                return;
            }
            // What no room would suffice for displaces nothing.
            let displaced = dirty.take_oldest(&self.cap, |_| fits);
            drop(dirty);
            match displaced {
                Some((old, old_class)) => self.policy.clean(old, old_class),
                None => return self.policy.clean(region, class),
            }
        }
    }

    /// Takes a region back for the owner of a slot, which had no room for it. Only the owner calls
    /// this.
    pub fn put_by_owner(&self, slot: &Slot, region: Region, class: SizeClass) {
        slot.settle();
        if slot.push(class, region) || (self.lend(slot, class) && slot.push(class, region)) {
            return;
        }
        if slot.cached() > slot.lease() {
            // What came on top when the lease was taken away, and is not paid for.
            self.give_all(slot);
        }
        // The next allocation must find what was freed last, whose pages are the likeliest to be in
        // memory: so it is what was freed before that goes to the table.
        let to_table = |older| self.put(older, class);
        if slot.give_older(class, to_table) && slot.push(class, region) {
            return;
        }
        self.put(region, class);
    }

    /// Lends a slot room for one more region; whether there is room. Only the owner calls this.
    fn lend(&self, slot: &Slot, class: SizeClass) -> bool {
        let (budget, most) = (self.policy.budget(), self.policy.most());
        if !slot.borrow(class, budget, &self.cap, most) {
            return false;
        }
        // Pairs with the fence in `hold_to_policy`: the thread that lowers the settings sees this
        // lease, or this thread sees what they are now.
        fence(SeqCst);
        let lowered = self.policy.budget() < budget || self.policy.most() < most;
        if lowered {
            self.hold_to_policy();
        }
        !lowered
    }

    /// Gives up a slot and what is in it. Only the owner calls this.
    pub fn leave(&self, slot: &Slot) {
        // The lease goes back before the regions, which then count in the table.
        slot.end_lease(&self.cap);
        self.give_all(slot);
        slot.leave();
    }

    /// Takes stock in the child of a fork, whose one thread calls this and owns `own`. The other
    /// threads may have been anywhere, also between a lease and its count: what is held is counted
    /// anew. The region that one of them was moving is lost.
    pub fn outlive_fork(&self, own: Option<&Slot>) {
        let mut held = self.dirty.lock().bytes();
        for slot in self.claimed() {
            if own.is_some_and(|own| core::ptr::eq(own, slot)) {
                slot.outlive();
            } else {
                // What is in it stays there, to be stolen, or for the next owner.
                slot.abandon();
            }
            held += slot.lease();
        }
        self.cap.count_anew(held);
    }

    /// Moves all of a slot's regions to the table. Only the owner calls this.
    fn give_all(&self, slot: &Slot) {
        for class in (0..CLASSES).filter_map(SizeClass::of_index) {
            while slot.give_older(class, |region| self.put(region, class)) {}
        }
    }

    /// Makes budget and cap hold that were lowered: what is in caches that have borrowed more than
    /// the budget moves to the table; then regions are cleaned, those of the table first, until no
    /// more is held than the cap allows.
    pub fn hold_to_policy(&self) {
        // See `lend`.
        fence(SeqCst);
        for slot in self.claimed() {
            if slot.lease() > self.policy.budget() {
                self.rob_of_all(slot, |region, class| self.put(region, class));
            }
        }
        let over = || self.cap.held() > self.policy.most();
        // The lock is taken once at least: see `put`.
        while self.clean_oldest(|_| over()) {}
        if over() {
            self.empty_caches();
        }
    }

    /// Cleans all regions.
    pub fn empty(&self) {
        self.empty_caches();
        while self.clean_oldest(|_| true) {}
    }

    /// Cleans the regions that are `wanted`; of the table, no more once one is not. Takes back what
    /// leases do not use then.
    pub fn empty_of(&self, wanted: impl Fn(Region) -> bool) {
        for slot in self.claimed() {
            let robbed = rob(slot, &wanted, |region, class| {
                self.policy.clean(region, class)
            });
            if robbed || (slot.lease() != 0 && slot.held() == 0) {
                slot.revoke(&self.cap);
            }
        }
        while self.clean_oldest(&wanted) {}
    }

    /// Cleans the region that has been in the table for longest, if it is wanted; whether it was.
    fn clean_oldest(&self, wanted: impl Fn(Region) -> bool) -> bool {
        let oldest = self.dirty.lock().take_oldest(&self.cap, wanted);
        let Some((region, class)) = oldest else {
            return false;
        };
        self.policy.clean(region, class);
        true
    }

    fn empty_caches(&self) {
        for slot in self.claimed() {
            self.rob_of_all(slot, |region, class| self.policy.clean(region, class));
        }
    }

    /// Takes the lease of a slot and all of its regions. The lease goes first: so the owner puts
    /// nothing in meanwhile but what it borrows for anew. What it is just putting in may be missed;
    /// it pays for that, too, or gives it up, when it frees the next.
    fn rob_of_all(&self, slot: &Slot, take: impl FnMut(Region, SizeClass)) {
        slot.end_lease(&self.cap);
        rob(slot, |_| true, take);
    }
}

/// Takes the regions of a cache that are `wanted`, at most as many as have a place, since a busy
/// owner fills places again; whether there were any.
fn rob(
    slot: &Slot,
    wanted: impl Fn(Region) -> bool,
    mut take: impl FnMut(Region, SizeClass),
) -> bool {
    let mut robbed = false;
    for class in (0..CLASSES).filter_map(SizeClass::of_index) {
        let stolen = core::iter::from_fn(|| slot.steal_if(class, &wanted));
        for region in stolen.take(PLACES) {
            take(region, class);
            robbed = true;
        }
    }
    robbed
}
