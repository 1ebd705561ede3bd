//! Free regions with contents, in the caches of threads and in a table for all threads. One cap
//! covers both: it counts the bytes in the table and the bytes that caches have borrowed.

use core::sync::atomic::Ordering::{Relaxed, SeqCst};

use crate::cap::Cap;
use crate::class::{CLASSES, PLACES, SLOTS, SizeClass};
use crate::dirty::Dirty;
use crate::region::Region;
use crate::slot::Slot;
use crate::sync::{AtomicUsize, Lock, fence};

/// Limits and actions that the process, or a test, provides.
pub trait Policy {
    /// Returns the maximum number of bytes in one cache.
    fn budget(&self) -> usize;

    /// Returns the maximum number of dirty bytes in total.
    fn most(&self) -> usize;

    /// Drops the contents of a free region, and takes the region over.
    fn clean(&self, region: Region, class: SizeClass);
}

/// Free regions with contents: all caches, the table, and the cap on both.
#[derive(Debug)]
pub struct Shared<P> {
    pub(crate) policy: P,
    pub(crate) slots: [Slot; SLOTS],
    /// Number of slots at the start of the table that may have been claimed. No later slot was ever
    /// claimed.
    pub(crate) claimed: AtomicUsize,
    pub(crate) dirty: Lock<Dirty>,
    pub(crate) cap: Cap,
}

impl<P: Policy> Shared<P> {
    /// Claims a slot for the calling thread. Returns `None` if all slots have owners.
    pub fn claim(&self) -> Option<&Slot> {
        let mut slots = self.slots.iter().enumerate();
        slots.find_map(|(at, slot)| {
            // Raise the number first, so that the child of a fork finds a slot that was just being
            // claimed. Relaxed: a thread that does not see the new number only misses a new cache.
            // When settings are lowered, the later fence in `lend` ensures that the new cache's
            // lease is not missed.
            self.claimed.fetch_max(at + 1, Relaxed);
            slot.claim().then_some(slot)
        })
    }

    /// Returns the slots that may have been claimed. No other slot can hold regions.
    pub fn claimed(&self) -> &[Slot] {
        &self.slots[..self.claimed.load(Relaxed)]
    }

    /// Takes a dirty region of a class from the table, or else from any cache.
    pub fn take(&self, class: SizeClass) -> Option<Region> {
        let found = self.dirty.lock().take(class, &self.cap);
        found.or_else(|| {
            let mut slots = self.claimed().iter();
            slots.find_map(|slot| self.steal(slot, class))
        })
    }

    /// Takes a region from a cache.
    fn steal(&self, slot: &Slot, class: SizeClass) -> Option<Region> {
        let found = slot.steal(class)?;
        if !slot.is_owned() {
            // The owner has left, or was lost in a fork, so it will not return the unused lease.
            slot.revoke(&self.cap);
        }
        Some(found)
    }

    /// Puts a region into the table. If there is no room, cleans the oldest regions of the table,
    /// and then `region` itself if there is still no room.
    pub fn put(&self, region: Region, class: SizeClass) {
        loop {
            let mut dirty = self.dirty.lock();
            // Read the cap under the lock: a thread that lowers the cap takes the lock afterwards,
            // and then checks the held bytes.
            let most = self.policy.most();
            let fits = class.bytes() <= most;
            if fits && dirty.keep(region, class, &self.cap, most) {
                return;
            }
            // A region that exceeds the whole cap displaces no other region.
            let displaced = dirty.take_oldest(&self.cap, |_| fits);
            drop(dirty);
            match displaced {
                Some((old, old_class)) => self.policy.clean(old, old_class),
                None => return self.policy.clean(region, class),
            }
        }
    }

    /// Frees a region on the slow path of a slot's owner, into the slot if possible, else into the
    /// table. Only the owner calls this.
    pub fn put_by_owner(&self, slot: &Slot, region: Region, class: SizeClass) {
        slot.settle();
        if slot.push(class, region) || (self.lend(slot, class) && slot.push(class, region)) {
            return;
        }
        if slot.cached() > slot.lease() {
            // The lease does not cover regions that were pushed while it was being revoked, so the
            // slot gives up all of its regions.
            self.give_all(slot);
        }
        // The next allocation should get the region that was freed last, because its pages are most
        // likely still in memory. So older regions go to the table to make room for it.
        let to_table = |older| self.put(older, class);
        if slot.give_older(class, to_table) && slot.push(class, region) {
            return;
        }
        self.put(region, class);
    }

    /// Lends a slot room for one more region. Returns false if the budget, the cap or the slot has
    /// no room, if the lease changes at the same time, or if the budget or the cap is lowered. Only
    /// the owner calls this.
    fn lend(&self, slot: &Slot, class: SizeClass) -> bool {
        let (budget, most) = (self.policy.budget(), self.policy.most());
        if !slot.borrow(class, budget, &self.cap, most) {
            return false;
        }
        // Pairs with the fence in `hold_to_policy`: either the thread that lowers the settings sees
        // this lease, or this thread sees the new settings.
        fence(SeqCst);
        let lowered = self.policy.budget() < budget || self.policy.most() < most;
        if lowered {
            self.hold_to_policy();
        }
        !lowered
    }

    /// Gives up a slot and its regions. Only the owner calls this.
    pub fn leave(&self, slot: &Slot) {
        // Return the lease first, because the cap counts the regions once more when they enter the
        // table.
        slot.end_lease(&self.cap);
        self.give_all(slot);
        slot.leave();
    }

    /// Restores the invariants in the child of a fork, where the calling thread is the only one.
    /// `own` is its slot, if it has one. The other threads may have been interrupted at any step,
    /// even between a lease and its count, so the held bytes are counted again. A region that
    /// another thread was moving is lost.
    pub fn outlive_fork(&self, own: Option<&Slot>) {
        let mut held = self.dirty.lock().bytes();
        for slot in self.claimed() {
            if own.is_some_and(|own| core::ptr::eq(own, slot)) {
                slot.outlive();
            } else {
                // The regions stay in the slot, for thieves or the next owner.
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

    /// Enforces a lowered budget and cap. Empties caches that have borrowed more than the budget
    /// into the table. Then cleans the oldest regions in the table until the cap is no longer
    /// exceeded. If an empty table does not suffice, cleans the regions in all caches.
    pub fn hold_to_policy(&self) {
        // Pairs with the fence in `lend`.
        fence(SeqCst);
        for slot in self.claimed() {
            if slot.lease() > self.policy.budget() {
                self.rob_of_all(slot, |region, class| self.put(region, class));
            }
        }
        let over = || self.cap.held() > self.policy.most();
        // This takes the lock at least once, as `put` requires.
        while self.clean_oldest(|_| over()) {}
        if over() {
            self.empty_caches();
        }
    }

    /// Cleans all free regions in caches and in the table.
    pub fn empty(&self) {
        self.empty_caches();
        while self.clean_oldest(|_| true) {}
    }

    /// Cleans the regions for which `wanted` returns true. Revokes the unused leases of caches that
    /// it robs or finds empty. In the table, stops at the first region that is not wanted.
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

    /// Cleans the oldest region in the table if `wanted` returns true for it. Otherwise, or if the
    /// table is empty, returns false.
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

    /// Takes the lease of a slot and all of its regions. The lease goes first, so that the owner
    /// must borrow again for every further region. A region that the owner is pushing at the same
    /// time may be missed. When the owner frees its next region, it also borrows for the missed
    /// region, or gives the missed region up.
    fn rob_of_all(&self, slot: &Slot, take: impl FnMut(Region, SizeClass)) {
        slot.end_lease(&self.cap);
        rob(slot, |_| true, take);
    }
}

/// Takes the regions of a cache for which `wanted` returns true. Takes at most [`PLACES`] of each
/// class, because a busy owner may keep adding regions. Returns whether it took any region.
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
