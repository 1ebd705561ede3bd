//! The cache of one thread.
//!
//! Every place of a cache is one word. Only the owner fills an empty place. Any thread may empty
//! one by exchanging the word for zero. A word identifies its region, and the thread that has
//! exchanged it owns that region. So no harm is done if the word was taken and put back in between.
//!
//! An exchange costs more than the rest of an allocation, and most caches never meet a thief. So
//! the owner works without exchanges until the first thief comes: it announces in `taking` which
//! word it is about to take, then checks `wanted`, and stores zero if that is false. A thief does
//! the opposite: it sets `wanted`, then checks `taking`, and leaves the word alone that it finds
//! there. Between its two steps each executes one half of a fence, so that they cannot miss each
//! other: the owner sees that it must exchange, or the thief sees what the owner takes. The thief's
//! half is a system call. Once a thief has seen that the owner was taking nothing, it records that
//! in `shared`, and no further thief needs the call. From then on the owner exchanges, and so do
//! later owners of the slot, since a thief may be about to exchange at any time.
//!
//! A slot borrows from the cap on dirty memory. Its *lease* covers the regions in it, and those
//! that it may still take: the owner checks the lease before it fills a place. [`Slot::revoke`]
//! takes back the unused part.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::cap::Cap;
use crate::class::{CLASSES, PLACES, SizeClass};
use crate::region::Region;
use crate::sync::{AtomicBool, AtomicUsize, can_fence, heavy_fence, light_fence};

/// Number of bytes by which a slot borrows from the cap.
const LEASE_STEP: usize = 4 << 20;

/// Counts of each class; only the owner of the slot adds to them.
#[derive(Debug)]
pub struct Counters {
    pub allocations: AtomicUsize,
    pub deallocations: AtomicUsize,
    /// Allocations that the thread's own cache did not serve.
    pub slow: AtomicUsize,
}

/// Adds one without an atomic addition, for the one thread that writes.
#[inline]
fn bump(counter: &AtomicUsize) {
    // Relaxed: statistics, on which no other memory depends.
    counter.store(counter.load(Relaxed).wrapping_add(1), Relaxed);
}

impl Counters {
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

/// Regions of one class.
#[derive(Debug)]
pub struct Stack {
    /// Place below which all regions lie; thieves leave gaps. Only the owner uses it.
    pub(crate) top: AtomicUsize,
    pub(crate) places: [AtomicUsize; PLACES],
}

impl Stack {
    /// Returns the places that hold a region.
    fn filled(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        let filled = |at: &usize| self.places[*at].load(Relaxed) != 0;
        (0..PLACES).filter(filled)
    }
}

/// Cache of one thread.
#[derive(Debug)]
#[repr(align(128))]
pub struct Slot {
    pub(crate) owned: AtomicBool,
    /// Time when the owner last took a region, in milliseconds. Only the owner uses it.
    pub(crate) clock: AtomicUsize,
    /// Bytes that the owner has put in and not taken out; never less than the bytes there. Only the
    /// owner uses it.
    pub(crate) cached: AtomicUsize,
    /// Bytes of the cap on dirty memory that this slot may fill. The owner adds; any thread may
    /// revoke.
    pub(crate) lease: AtomicUsize,
    /// Word that the owner is taking without an exchange; else zero. Only the owner writes it.
    pub(crate) taking: AtomicUsize,
    /// Whether a thief was here, so that the owner must exchange words. Never reset.
    pub(crate) wanted: AtomicBool,
    /// Whether the owner is known to exchange words. Never reset.
    pub(crate) shared: AtomicBool,
    /// Whether thieves were here since the owner last counted.
    pub(crate) robbed: AtomicBool,
    pub(crate) stacks: [Stack; CLASSES],
    pub counters: [Counters; CLASSES],
}

impl Slot {
    /// Pops the most recently freed region of a class. Only the owner calls this.
    #[inline]
    pub fn pop(&self, class: SizeClass) -> Option<Region> {
        let stack = &self.stacks[class.index()];
        // Relaxed: `top` and `cached` are the owner's own, and so are words that no thief has
        // touched. Regions that a previous owner left here were acquired in `claim`.
        let top = stack.top.load(Relaxed).wrapping_sub(1);
        let place = stack.places.get(top)?;
        let word = place.load(Relaxed);
        // Release, as for every store to it: a thief that reads this word sees the places of
        // earlier words as empty.
        self.taking.store(word, Release);
        // Pairs with the heavy fence in `share`.
        light_fence();
        // Relaxed: the fence orders it. A thief, or a fork, may have left a gap.
        if self.wanted.load(Relaxed) || word == 0 {
            return self.pop_shared(class);
        }
        place.store(0, Relaxed);
        // Release: pairs with the acquire in `share`, which then sees the place empty.
        self.taking.store(0, Release);
        stack.top.store(top, Relaxed);
        self.took(class);
        Some(Region(word))
    }

    /// Pops a region that another thread may be stealing at the same time.
    #[inline(never)]
    fn pop_shared(&self, class: SizeClass) -> Option<Region> {
        // From here on nothing is taken without an exchange. Release: as in `pop`.
        self.taking.store(0, Release);
        let stack = &self.stacks[class.index()];
        let mut top = stack.top.load(Relaxed).min(PLACES);
        while top > 0 {
            top -= 1;
            // Acquire: pairs with the release in `push`, by this thread or by a previous owner of
            // the slot. AcqRel is not needed: the next `push` releases.
            let word = stack.places[top].swap(0, Acquire);
            if word != 0 {
                stack.top.store(top, Relaxed);
                self.took(class);
                return Some(Region(word));
            }
        }
        stack.top.store(0, Relaxed);
        None
    }

    /// Counts a region that the owner has taken out.
    #[inline]
    fn took(&self, class: SizeClass) {
        let cached = self.cached.load(Relaxed);
        self.cached.store(cached - class.bytes(), Relaxed);
    }

    /// Pushes a region, if a place is left and the lease covers it. Only the owner calls this.
    #[inline]
    pub fn push(&self, class: SizeClass, region: Region) -> bool {
        let stack = &self.stacks[class.index()];
        let (top, cached) = (stack.top.load(Relaxed), self.cached.load(Relaxed));
        // `cached` cannot overflow: it is at most the size of the address space.
        if top >= PLACES || cached + class.bytes() > self.lease.load(Relaxed) {
            return false;
        }
        // Release: this thread's accesses to the region happen before those of its next user.
        stack.places[top].store(region.0, Release);
        stack.top.store(top + 1, Relaxed);
        self.cached.store(cached + class.bytes(), Relaxed);
        true
    }

    /// Makes room for a region that was freed later: gives away the older half of the regions of a
    /// class, oldest first, and moves the others down. Returns whether there were any. Only the
    /// owner calls this.
    pub fn give_older(&self, class: SizeClass, mut give: impl FnMut(Region)) -> bool {
        let stack = &self.stacks[class.index()];
        let older = stack.filled().count().div_ceil(2);
        let (mut given, mut kept) = (0, 0);
        for place in &stack.places {
            // Acquire: pairs with the release in `push`, as in `pop`.
            let word = place.swap(0, Acquire);
            if word == 0 {
                continue;
            }
            if given < older {
                given += 1;
                self.took(class);
                give(Region(word));
            } else {
                // Release: a thief's acquire must see the accesses of this region's last user. The
                // place is empty: this thread has just emptied it or a higher one, and no other
                // thread fills any.
                stack.places[kept].store(word, Release);
                kept += 1;
            }
        }
        stack.top.store(kept, Relaxed);
        given > 0
    }

    /// Counts again after thefts. Returns whether there were any. Only the owner calls this.
    pub fn settle(&self) -> bool {
        // Acquire: pairs with the release in `steal_if`, so that the place is counted as empty.
        let robbed = self.robbed.swap(false, Acquire);
        if robbed {
            self.recount();
        }
        robbed
    }

    /// Returns whether the class has a place left.
    pub fn has_place(&self, class: SizeClass) -> bool {
        self.stacks[class.index()].top.load(Relaxed) < PLACES
    }

    pub fn cached(&self) -> usize {
        self.cached.load(Relaxed)
    }

    pub fn lease(&self) -> usize {
        self.lease.load(Relaxed)
    }

    /// Borrows from the cap for one more region of the class, within a budget for the whole slot.
    /// Returns whether that region is then covered. Only the owner calls this.
    pub fn borrow(&self, class: SizeClass, budget: usize, cap: &Cap, most: usize) -> bool {
        let wanted = self.cached().saturating_add(class.bytes());
        if !self.has_place(class) || wanted > budget {
            return false;
        }
        let lease = self.lease();
        let missing = wanted.saturating_sub(lease);
        let step = missing.max(LEASE_STEP).min(budget.saturating_sub(lease));
        if step < missing || !cap.lease(step, most) {
            return false;
        }
        // Relaxed: a count. If the lease was revoked and set again since it was read, adding the
        // step to it might exceed the budget.
        let lent = self
            .lease
            .compare_exchange(lease, lease + step, Relaxed, Relaxed);
        if lent.is_err() {
            cap.unlease(step);
        }
        lent.is_ok()
    }

    /// Returns the whole lease to the cap. The owner then pushes nothing more.
    pub fn end_lease(&self, cap: &Cap) {
        cap.unlease(self.lease.swap(0, Relaxed));
    }

    /// Returns to the cap the part of the lease beyond what the slot holds. Any thread may call
    /// this.
    ///
    /// It may miss regions that the owner is just pushing, while the owner still sees the old
    /// lease. The owner finds its lease too small the next time, and borrows for those, too.
    pub fn revoke(&self, cap: &Cap) {
        let before = self.lease.swap(0, Relaxed);
        let held = self.held();
        // The cap counts the bytes before the lease covers them: a thread that takes the lease
        // meanwhile must not take from the cap what is not in it yet. The slot may hold more than
        // its lease was.
        cap.admit(held);
        // The owner may have borrowed meanwhile for all that it holds; that is not lent twice.
        let lent = self.lease.fetch_max(held, Relaxed);
        cap.unlease(before + lent.min(held));
    }

    /// Returns the time when the owner last took a region, in milliseconds.
    #[inline]
    pub fn clock(&self) -> u64 {
        self.clock.load(Relaxed) as u64
    }

    #[inline]
    pub fn set_clock(&self, now: u64) {
        self.clock.store(now as usize, Relaxed);
    }

    /// Makes the owner exchange words from now on. Returns the word that it may be taking without
    /// an exchange at this moment, or zero; `None` if the system does not execute the fence.
    fn share(&self) -> Option<usize> {
        // Acquire: pairs with the release below, or in `claim`: what was seen there holds here.
        if self.shared.load(Acquire) {
            return Some(0);
        }
        // Relaxed: the fence orders it before the load of `taking`.
        self.wanted.store(true, Relaxed);
        // Pairs with the light fence in `pop`: stores before that are seen below, and loads after
        // it see `wanted`.
        if !heavy_fence() {
            return None;
        }
        // Acquire: pairs with the release in `pop`.
        let taking = self.taking.load(Acquire);
        if taking == 0 {
            // Release: pairs with the acquire above.
            self.shared.store(true, Release);
        }
        Some(taking)
    }

    /// Takes the region that the owner would use last. Any thread may call this.
    pub fn steal(&self, class: SizeClass) -> Option<Region> {
        self.steal_if(class, |_| true)
    }

    /// Takes the first region that is `wanted`, beginning with the one that the owner would use
    /// last. Leaves out the region that the owner is just taking.
    pub fn steal_if(&self, class: SizeClass, wanted: impl Fn(Region) -> bool) -> Option<Region> {
        for place in &self.stacks[class.index()].places {
            let word = place.load(Relaxed);
            if word == 0 || !wanted(Region(word)) || word == self.share()? {
                continue;
            }
            // Acquire: pairs with the release in `push`.
            if place.compare_exchange(word, 0, Acquire, Relaxed).is_ok() {
                // Release: pairs with the acquire in `settle`.
                self.robbed.store(true, Release);
                return Some(Region(word));
            }
        }
        None
    }

    /// Returns the number of regions of a class in this cache, as far as other threads can see it.
    pub fn count(&self, class: SizeClass) -> usize {
        self.stacks[class.index()].filled().count()
    }

    /// Returns the bytes in this cache, as far as other threads can see it.
    pub fn held(&self) -> usize {
        let classes = (0..CLASSES).filter_map(SizeClass::of_index);
        classes.map(|class| class.bytes() * self.count(class)).sum()
    }

    /// Makes the calling thread the owner of a slot without an owner. Returns whether it did.
    pub fn claim(&self) -> bool {
        // Relaxed first: most slots are taken. AcqRel: pairs with the last owner's `leave`.
        if self.owned.load(Relaxed) || self.owned.swap(true, AcqRel) {
            return false;
        }
        if !can_fence() {
            // Thieves could not make this thread exchange words, so it does so from the beginning.
            // Release: pairs with the acquire in `share`, which then sees what the last owner took.
            self.wanted.store(true, Relaxed);
            self.shared.store(true, Release);
        }
        // The last owner may have vanished in a fork.
        self.recount();
        true
    }

    /// Recomputes `top` and `cached` from the places.
    fn recount(&self) {
        for stack in &self.stacks {
            let top = stack.filled().next_back().map_or(0, |at| at + 1);
            stack.top.store(top, Relaxed);
        }
        self.cached.store(self.held(), Relaxed);
    }

    /// Gives up the slot of a thread that does not exist in the child of a fork. Its lease becomes
    /// the bytes in it, which the cap must count again.
    pub fn abandon(&self) {
        // Relaxed: the child has one thread. A region that was being taken is lost, or still here.
        self.taking.store(0, Relaxed);
        self.lease.store(self.held(), Relaxed);
        self.leave();
    }

    /// Prepares the slot of the only thread in the child of a fork. It has no lease, so that the
    /// next free takes the slow path and borrows for all regions that are here. The cap must be
    /// counted again.
    pub fn outlive(&self) {
        // Relaxed: the child has one thread. A thief that does not exist here may have taken a
        // region without setting the flag.
        self.lease.store(0, Relaxed);
        self.robbed.store(true, Relaxed);
    }

    /// Returns whether the slot has an owner, who looks after its lease.
    pub fn is_owned(&self) -> bool {
        // Acquire: pairs with the release in `leave`: a thread that sees that the owner has left
        // sees its places as it left them.
        self.owned.load(Acquire)
    }

    /// Gives the slot up.
    pub fn leave(&self) {
        // Release: pairs with the acquire in `claim`, which must see the owner's words.
        self.owned.store(false, Release);
    }
}
