//! Free regions with contents: in the caches of threads, or in a table for all threads. One cap
//! covers both: the held bytes are those in the table and those that the caches have borrowed.

use core::sync::atomic::Ordering::{Relaxed, SeqCst};

use crate::cap::Cap;
use crate::class::{CLASSES, PLACES, SLOTS, SizeClass};
use crate::dirty::Dirty;
use crate::region::Region;
use crate::slot::Slot;
use crate::sync::{AtomicUsize, Lock, fence};

/// Decisions of the process, or of a test.
pub trait Policy {
    /// Returns the maximum number of bytes that one cache may keep.
    fn budget(&self) -> usize;

    /// Returns the maximum number of dirty bytes in total.
    fn most(&self) -> usize;

    /// Takes a region that may not be kept, and returns its contents to the system.
    fn clean(&self, region: Region, class: SizeClass);
}

/// Caches, table and cap.
#[derive(Debug)]
pub struct Shared<P> {
    pub(crate) policy: P,
    pub(crate) slots: [Slot; SLOTS],
    /// Index from which slots were never claimed.
    pub(crate) claimed: AtomicUsize,
    pub(crate) dirty: Lock<Dirty>,
    pub(crate) cap: Cap,
}

impl<P: Policy> Shared<P> {
    /// Claims a slot for the calling thread.
    pub fn claim(&self) -> Option<&Slot> {
        let mut slots = self.slots.iter().enumerate();
        slots.find_map(|(at, slot)| {
            // This comes first, so that the child of a fork finds a slot that was just being
            // claimed. Relaxed: a thread that does not see it yet misses a cache that has just
            // begun. The later fence in `lend` ensures that its lease is not missed when settings
            // are lowered.
            self.claimed.fetch_max(at + 1, Relaxed);
            slot.claim().then_some(slot)
        })
    }

    /// Returns the slots that may hold anything: the maximum number of simultaneous threads so far.
    pub fn claimed(&self) -> &[Slot] {
        &self.slots[..self.claimed.load(Relaxed)]
    }

    /// Takes a region that some thread has freed.
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
            // The owner was lost in a fork: no other thread would return the unused lease.
            slot.revoke(&self.cap);
        }
        Some(found)
    }

    /// Puts a region into the table. If there is no room, older regions are cleaned.
    pub fn put(&self, region: Region, class: SizeClass) {
        loop {
            let mut dirty = self.dirty.lock();
            // Read under the lock: a thread that lowers it takes the lock later, and then checks
            // the held bytes.
            let most = self.policy.most();
            let fits = class.bytes() <= most;
            if fits && dirty.keep(region, class, &self.cap, most) {
                return;
            }
            // A region that exceeds the whole cap displaces nothing.
            let displaced = dirty.take_oldest(&self.cap, |_| fits);
            drop(dirty);
            match displaced {
                Some((old, old_class)) => self.policy.clean(old, old_class),
                None => return self.policy.clean(region, class),
            }
        }
    }

    /// Puts a region back for the owner of a slot, which had no room for it. Only the owner calls
    /// this.
    pub fn put_by_owner(&self, slot: &Slot, region: Region, class: SizeClass) {
        slot.settle();
        if slot.push(class, region) || (self.lend(slot, class) && slot.push(class, region)) {
            return;
        }
        if slot.cached() > slot.lease() {
            // Regions that were pushed while the lease was revoked are not covered by a lease.
            self.give_all(slot);
        }
        // The next allocation must find the region that was freed last, whose pages are likeliest
        // to be in memory. So regions that were freed before it go to the table.
        let to_table = |older| self.put(older, class);
        if slot.give_older(class, to_table) && slot.push(class, region) {
            return;
        }
        self.put(region, class);
    }

    /// Lends a slot room for one more region. Returns whether there is room. Only the owner calls
    /// this.
    fn lend(&self, slot: &Slot, class: SizeClass) -> bool {
        let (budget, most) = (self.policy.budget(), self.policy.most());
        if !slot.borrow(class, budget, &self.cap, most) {
            return false;
        }
        // Pairs with the fence in `hold_to_policy`: the thread that lowers the settings sees this
        // lease, or this thread sees the new settings.
        fence(SeqCst);
        let lowered = self.policy.budget() < budget || self.policy.most() < most;
        if lowered {
            self.hold_to_policy();
        }
        !lowered
    }

    /// Gives up a slot and its regions. Only the owner calls this.
    pub fn leave(&self, slot: &Slot) {
        // The lease is returned before the regions, which the table then counts.
        slot.end_lease(&self.cap);
        self.give_all(slot);
        slot.leave();
    }

    /// Restores the invariants in the child of a fork, whose one thread calls this and owns `own`.
    /// The other threads may have been anywhere, also between a lease and its count, so the held
    /// bytes are counted again. A region that one of them was moving is lost.
    pub fn outlive_fork(&self, own: Option<&Slot>) {
        let mut held = self.dirty.lock().bytes();
        for slot in self.claimed() {
            if own.is_some_and(|own| core::ptr::eq(own, slot)) {
                slot.outlive();
            } else {
                // Its regions stay there, to be stolen, or for the next owner.
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

    /// Enforces a lowered budget and a lowered cap. Caches that have borrowed more than the budget
    /// are emptied into the table. Then regions are cleaned, those of the table first, until no
    /// more is held than the cap allows.
    pub fn hold_to_policy(&self) {
        // Pairs with the fence in `lend`.
        fence(SeqCst);
        for slot in self.claimed() {
            if slot.lease() > self.policy.budget() {
                self.rob_of_all(slot, |region, class| self.put(region, class));
            }
        }
        let over = || self.cap.held() > self.policy.most();
        // The lock is taken at least once: see `put`.
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

    /// Cleans the regions that are `wanted`; in the table, it stops at the first that is not. Then
    /// revokes unused leases.
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

    /// Cleans the region that has been in the table longest, if it is wanted. Returns whether it
    /// was.
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

    /// Takes the lease of a slot and all of its regions. The lease goes first, so the owner then
    /// pushes only regions for which it borrows again. A region that it is just pushing may be
    /// missed. It borrows for that one, too, or gives it up, when it frees the next.
    fn rob_of_all(&self, slot: &Slot, take: impl FnMut(Region, SizeClass)) {
        slot.end_lease(&self.cap);
        rob(slot, |_| true, take);
    }
}

/// Takes the regions of a cache that are `wanted`, at most as many as there are places, since a
/// busy owner fills places again. Returns whether there were any.
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
