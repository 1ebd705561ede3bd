//! Cache of one thread.
//!
//! Every place of a cache is one word: zero, or the word of a region. Only the owner fills an empty
//! place. Any thread may take a word: the owner by a plain store of zero or an atomic exchange with
//! zero, another thread by a compare-exchange with zero. The thread that took the word owns the
//! region. ABA is harmless: if the word is taken and put back between a thief's load and its
//! compare-exchange, the thief still takes a free region.
//!
//! An atomic exchange costs more than the rest of an allocation, and most caches never meet a
//! thief. So the owner uses plain stores until the first theft. It first announces the word that it
//! is about to take, by storing the word to `taking`. Then it checks `wanted`, and stores zero to
//! the place if `wanted` is false. A thief does the opposite: it sets `wanted`, then checks
//! `taking`, and skips the announced word. Between the two steps, each side executes one half of a
//! fence, so that at least one sees the other: the owner sees that it must use atomic exchanges, or
//! the thief sees the announced word. The thief's half is a system call. A thief that finds no
//! announced word sets `shared`, and further thieves skip the call. From then on, the owner and all
//! later owners of the slot use atomic exchanges, because a thief may come at any time.
//!
//! A slot borrows from the cap on dirty memory. Its *lease* is the number of borrowed bytes. The
//! lease covers the regions in the slot and room for more: the owner checks the lease before it
//! fills a place. [`Slot::revoke`] takes back the unused part. A region that the owner pushes
//! during a revocation may stay uncovered until the owner's next free on the slow path.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::cap::Cap;
use crate::class::{CLASSES, PLACES, SizeClass};
use crate::region::Region;
use crate::sync::{AtomicBool, AtomicUsize, can_fence, heavy_fence, light_fence};

/// Number of bytes that a slot borrows from the cap in one step, unless a region needs more or the
/// budget leaves less.
const LEASE_STEP: usize = 4 << 20;

/// Counters of one class. Only the slot's owner writes to them.
#[derive(Debug)]
pub struct Counters {
    pub allocations: AtomicUsize,
    pub deallocations: AtomicUsize,
    /// Number of allocations for which the thread's cache had no region.
    pub slow: AtomicUsize,
}

/// Adds one to a counter that only one thread writes, without an atomic addition.
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

/// Stack of cached regions of one class.
#[derive(Debug)]
pub struct Stack {
    /// Index of the place for the next region. All regions lie below it; thefts leave gaps there.
    /// Only the owner uses it.
    pub(crate) top: AtomicUsize,
    pub(crate) places: [AtomicUsize; PLACES],
}

impl Stack {
    /// Returns the indices of the places that hold a region.
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
    /// Time in milliseconds when the owner last took or resized a region, or freed one on the slow
    /// path. Only the owner uses it.
    pub(crate) clock: AtomicUsize,
    /// Bytes that the owner has put in and not taken out: at least the bytes in the slot, since
    /// thefts are counted later. Only the owner uses it.
    pub(crate) cached: AtomicUsize,
    /// Bytes that this slot has borrowed from the cap on dirty memory. Only the owner borrows; any
    /// thread may revoke the lease.
    pub(crate) lease: AtomicUsize,
    /// Word that the owner is taking without an atomic exchange, or zero. Only the owner writes it,
    /// except that the child of a fork resets it.
    pub(crate) taking: AtomicUsize,
    /// Whether the owner must use atomic exchanges: a thief has come, or the system has no fence
    /// for thieves. Never reset.
    pub(crate) wanted: AtomicBool,
    /// Whether the owner is known to use atomic exchanges. Never reset.
    pub(crate) shared: AtomicBool,
    /// Whether regions may have been stolen since the last call of [`settle`](Self::settle).
    pub(crate) robbed: AtomicBool,
    pub(crate) stacks: [Stack; CLASSES],
    pub counters: [Counters; CLASSES],
}

impl Slot {
    /// Pops the most recently freed region of a class. Only the owner calls this.
    #[inline]
    pub fn pop(&self, class: SizeClass) -> Option<Region> {
        let stack = &self.stacks[class.index()];
        // Relaxed: only the owner writes `top` and fills places. If a previous owner of the slot
        // filled this place, `claim` has acquired that store.
        let top = stack.top.load(Relaxed).wrapping_sub(1);
        let place = stack.places.get(top)?;
        let word = place.load(Relaxed);
        // Release: pairs with the acquire in `share`. A thief that reads this word sees the places
        // of words that were taken earlier as empty.
        self.taking.store(word, Release);
        // Pairs with the heavy fence in `share`.
        light_fence();
        // Relaxed: the fence orders the load. The word may be zero, because a thief or a fork has
        // left a gap.
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

    /// Pops a region with atomic exchanges, because other threads may be stealing.
    #[inline(never)]
    fn pop_shared(&self, class: SizeClass) -> Option<Region> {
        // End the announcement, because this function takes words only by atomic exchanges.
        // Release: pairs with the acquire in `share`. A thief that reads this zero sees the places
        // of words that were taken earlier as empty.
        self.taking.store(0, Release);
        let stack = &self.stacks[class.index()];
        let mut top = stack.top.load(Relaxed).min(PLACES);
        while top > 0 {
            top -= 1;
            // Acquire: pairs with the release in `push` or `give_older`, by this thread or by a
            // previous owner of the slot. A release is not needed: the zero hands over no region.
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

    /// Subtracts a region that the owner has taken out from `cached`.
    #[inline]
    fn took(&self, class: SizeClass) {
        let cached = self.cached.load(Relaxed);
        self.cached.store(cached - class.bytes(), Relaxed);
    }

    /// Pushes a region if a place is left and the lease covers it, and returns whether it did. Only
    /// the owner calls this.
    #[inline]
    pub fn push(&self, class: SizeClass, region: Region) -> bool {
        let stack = &self.stacks[class.index()];
        let (top, cached) = (stack.top.load(Relaxed), self.cached.load(Relaxed));
        // The sum cannot overflow with 64-bit addresses. `cached` is at most the largest lease so
        // far, or the bytes that `recount` found. A new lease exceeds the bytes that were in the
        // slot at the preceding `settle` by at most one region and one `LEASE_STEP`.
        if top >= PLACES || cached + class.bytes() > self.lease.load(Relaxed) {
            return false;
        }
        // Release: this thread's accesses to the region precede those of the next user.
        stack.places[top].store(region.0, Release);
        stack.top.store(top + 1, Relaxed);
        self.cached.store(cached + class.bytes(), Relaxed);
        true
    }

    /// Passes the older half of the regions of a class, rounded up, to `give`, oldest first. Moves
    /// the others down. Returns whether it passed any region. Only the owner calls this.
    pub fn give_older(&self, class: SizeClass, mut give: impl FnMut(Region)) -> bool {
        let stack = &self.stacks[class.index()];
        let older = stack.filled().count().div_ceil(2);
        let (mut given, mut kept) = (0, 0);
        for place in &stack.places {
            // Acquire: pairs with the release in `push` or `give_older`.
            let word = place.swap(0, Acquire);
            if word == 0 {
                continue;
            }
            if given < older {
                given += 1;
                self.took(class);
                give(Region(word));
            } else {
                // Release: a thief must see the accesses of the region's last user. The place is
                // empty: this loop has emptied it and all lower ones, and no other thread fills
                // places.
                stack.places[kept].store(word, Release);
                kept += 1;
            }
        }
        stack.top.store(kept, Relaxed);
        given > 0
    }

    /// Recounts the regions if any may have been stolen since the last call. Returns whether it
    /// did. Only the owner calls this.
    pub fn settle(&self) -> bool {
        // Acquire: pairs with the release in `steal_if`, so that this thread sees that the thief
        // has emptied the place.
        let robbed = self.robbed.swap(false, Acquire);
        if robbed {
            self.recount();
        }
        robbed
    }

    /// Returns whether the stack of the class has a place left above its top. Only the owner calls
    /// this.
    pub fn has_place(&self, class: SizeClass) -> bool {
        self.stacks[class.index()].top.load(Relaxed) < PLACES
    }

    pub fn cached(&self) -> usize {
        self.cached.load(Relaxed)
    }

    pub fn lease(&self) -> usize {
        self.lease.load(Relaxed)
    }

    /// Borrows from the cap for one more region of the class, within `budget` for the whole slot.
    /// Returns false, without any change, if the stack, the budget or the cap has no room, or if
    /// the lease changes at the same time. Only the owner calls this.
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
        // Relaxed: no other memory depends on this count. Uses a compare-exchange: if the lease has
        // changed since the load, adding the step might exceed the budget.
        let lent = self
            .lease
            .compare_exchange(lease, lease + step, Relaxed, Relaxed);
        if lent.is_err() {
            cap.unlease(step);
        }
        lent.is_ok()
    }

    /// Returns the whole lease to the cap. The owner then cannot push regions without borrowing
    /// again.
    pub fn end_lease(&self, cap: &Cap) {
        cap.unlease(self.lease.swap(0, Relaxed));
    }

    /// Sets the lease to the bytes in the slot, and returns the rest to the cap. Any thread may
    /// call this.
    ///
    /// It may miss regions that the owner is pushing under the old lease. At the next free, the
    /// owner then finds its lease too small. It also borrows for those regions, or gives them up.
    pub fn revoke(&self, cap: &Cap) {
        let before = self.lease.swap(0, Relaxed);
        let held = self.held();
        // Add the bytes to the cap first: another thread may end the lease meanwhile, and must not
        // subtract bytes that the cap does not count yet. The slot may hold more than the old
        // lease.
        cap.admit(held);
        // The owner may have borrowed for these bytes in the meantime: do not count them twice.
        let lent = self.lease.fetch_max(held, Relaxed);
        cap.unlease(before + lent.min(held));
    }

    /// Returns the time in milliseconds when the owner last took or resized a region, or freed one
    /// on the slow path.
    #[inline]
    pub fn clock(&self) -> u64 {
        self.clock.load(Relaxed) as u64
    }

    #[inline]
    pub fn set_clock(&self, now: u64) {
        self.clock.store(now as usize, Relaxed);
    }

    /// Makes the owner use atomic exchanges from now on. Returns the word that the owner is taking
    /// by a plain store, or zero if there is none. Returns `None` if the system refuses the fence.
    fn share(&self) -> Option<usize> {
        // Acquire: pairs with the release below or in `claim`. This thread then sees every store
        // that was visible to the thread that set `shared`.
        if self.shared.load(Acquire) {
            return Some(0);
        }
        // Relaxed: the fence orders this store before the load of `taking`.
        self.wanted.store(true, Relaxed);
        // Pairs with the light fence in `pop`: this thread sees the owner's stores before that
        // fence, or the owner's loads after it see `wanted`.
        if !heavy_fence() {
            return None;
        }
        // Acquire: pairs with the releases in `pop` and `pop_shared`.
        let taking = self.taking.load(Acquire);
        if taking == 0 {
            // Release: pairs with the acquire above.
            self.shared.store(true, Release);
        }
        Some(taking)
    }

    /// Steals the oldest region of a class, if possible. Any thread may call this.
    pub fn steal(&self, class: SizeClass) -> Option<Region> {
        self.steal_if(class, |_| true)
    }

    /// Steals the oldest region of a class for which `wanted` returns true. Skips the region that
    /// the owner is taking at the same time.
    pub fn steal_if(&self, class: SizeClass, wanted: impl Fn(Region) -> bool) -> Option<Region> {
        for place in &self.stacks[class.index()].places {
            let word = place.load(Relaxed);
            if word == 0 || !wanted(Region(word)) || word == self.share()? {
                continue;
            }
            // Acquire: pairs with the release in `push` or `give_older`.
            if place.compare_exchange(word, 0, Acquire, Relaxed).is_ok() {
                // Release: pairs with the acquire in `settle`.
                self.robbed.store(true, Release);
                return Some(Region(word));
            }
        }
        None
    }

    /// Returns the number of regions of a class in this cache. May be out of date in other threads.
    pub fn count(&self, class: SizeClass) -> usize {
        self.stacks[class.index()].filled().count()
    }

    /// Returns the total size of the regions in this cache in bytes. May be out of date in other
    /// threads.
    pub fn held(&self) -> usize {
        let classes = (0..CLASSES).filter_map(SizeClass::of_index);
        classes.map(|class| class.bytes() * self.count(class)).sum()
    }

    /// Makes the calling thread the owner of the slot. Returns false if the slot already has an
    /// owner.
    pub fn claim(&self) -> bool {
        // Relaxed load first, so that a search writes to no slot that has an owner. AcqRel: the
        // acquire pairs with the release in `leave`.
        if self.owned.load(Relaxed) || self.owned.swap(true, AcqRel) {
            return false;
        }
        if !can_fence() {
            // Without the fence, a thief cannot make the owner use atomic exchanges, so use them
            // from the start. Release: pairs with the acquire in `share`, which then sees the last
            // owner's stores.
            self.wanted.store(true, Relaxed);
            self.shared.store(true, Release);
        }
        // The last owner's counts may be wrong: thieves have taken regions since, or the owner was
        // lost in a fork.
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

    /// Gives up the slot of a thread that does not exist in the child of a fork. Sets the lease to
    /// the bytes in the slot. The caller must then recount the cap.
    pub fn abandon(&self) {
        // Relaxed: the child has only one thread. A region that was being taken is lost, or still
        // in the slot.
        self.taking.store(0, Relaxed);
        self.lease.store(self.held(), Relaxed);
        self.leave();
    }

    /// Prepares the slot of the only thread in the child of a fork. Sets the lease to zero, so that
    /// the next free borrows for all regions in the slot. The caller must then recount the cap.
    pub fn outlive(&self) {
        // Relaxed: the child has only one thread. A thief of the parent may have taken a region
        // without setting `robbed`, so this thread sets it.
        self.lease.store(0, Relaxed);
        self.robbed.store(true, Relaxed);
    }

    /// Returns whether the slot has an owner. An owner returns an unused lease itself when it
    /// leaves.
    pub fn is_owned(&self) -> bool {
        // Acquire: pairs with the release in `leave`, so that this thread sees the places as the
        // last owner left them.
        self.owned.load(Acquire)
    }

    /// Ends the calling thread's ownership of the slot. The regions stay in the slot.
    pub fn leave(&self) {
        // Release: pairs with the acquire in `claim`, so that the next owner sees this owner's
        // words.
        self.owned.store(false, Release);
    }
}
