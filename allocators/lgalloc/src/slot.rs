//! The cache of one thread.
//!
//! Every place of a cache is one word. Only the owner fills an empty place; anybody may empty one,
//! by exchanging the word for zero. A word says by itself which region it is, and whoever has
//! exchanged it owns that region: so it does no harm if the word was taken and put back in between.
//!
//! An exchange costs more than all the rest of an allocation, and most caches never see a thief. So
//! the owner does without until the first one comes: it announces in `taking` which word it is
//! about to take, then looks at `wanted`, and stores zero where nobody wants anything. A thief does
//! the opposite: it sets `wanted`, then looks at `taking`, and leaves alone the word that it finds
//! there. Between its two steps each has one half of a fence, so that they cannot miss each other:
//! the owner sees that it must exchange, or the thief sees what the owner takes. The thief's half
//! is a system call; once it has seen that the owner was taking nothing, it says so in `shared`,
//! and no thief needs that call again. The owner exchanges from then on, and so does who owns the
//! slot later: a thief may stand before its own exchange at any time.
//!
//! A slot borrows from the cap on dirty memory. Its *lease* covers what it holds, and what it may
//! still put in: the owner checks the lease before it fills a place. [`Slot::revoke`] takes back
//! what is not used.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::cap::Cap;
use crate::class::{CLASSES, PLACES, SizeClass};
use crate::region::Region;
use crate::sync::{AtomicBool, AtomicUsize, can_fence, heavy_fence, light_fence};

/// A slot borrows from the cap in steps of this many bytes.
const LEASE_STEP: usize = 4 << 20;

/// What is counted for each class; only the owner of the slot adds.
#[derive(Debug)]
pub struct Counters {
    pub allocations: AtomicUsize,
    pub deallocations: AtomicUsize,
    /// Allocations that the thread's own cache did not serve.
    pub slow: AtomicUsize,
}

/// Adds without an atomic addition, for the one thread that writes.
#[inline]
fn bump(counter: &AtomicUsize) {
    // Relaxed: statistics; readers take whatever they see.
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

/// The regions of one class.
#[derive(Debug)]
pub struct Stack {
    /// Regions lie below this place; thieves leave gaps. The owner's own.
    pub(crate) top: AtomicUsize,
    pub(crate) places: [AtomicUsize; PLACES],
}

impl Stack {
    /// Places that hold a region.
    fn filled(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        let filled = |at: &usize| self.places[*at].load(Relaxed) != 0;
        (0..PLACES).filter(filled)
    }
}

/// The cache of one thread.
#[derive(Debug)]
#[repr(align(128))]
pub struct Slot {
    pub(crate) owned: AtomicBool,
    /// When the owner last took a region, in milliseconds. The owner's own.
    pub(crate) clock: AtomicUsize,
    /// Bytes that the owner has put in and not taken out; never less than what is there. The
    /// owner's own.
    pub(crate) cached: AtomicUsize,
    /// Bytes of the cap on dirty memory that this slot may fill. The owner adds, anybody may
    /// revoke.
    pub(crate) lease: AtomicUsize,
    /// The word that the owner is just taking without an exchange; zero otherwise. The owner's own.
    pub(crate) taking: AtomicUsize,
    /// Whether a thief was here: the owner must exchange words. Never false again.
    pub(crate) wanted: AtomicBool,
    /// Whether the owner is known to do so. Never false again.
    pub(crate) shared: AtomicBool,
    /// Whether thieves were here since the owner last counted.
    pub(crate) robbed: AtomicBool,
    pub(crate) stacks: [Stack; CLASSES],
    pub counters: [Counters; CLASSES],
}

impl Slot {
    /// The most recently freed region of a class. Only the owner calls this.
    #[inline]
    pub fn pop(&self, class: SizeClass) -> Option<Region> {
        let stack = &self.stacks[class.index()];
        // Relaxed: `top` and `cached` are the owner's own, and so are the words that no thief has
        // been at; what an owner before left here was acquired in `claim`.
        let top = stack.top.load(Relaxed).wrapping_sub(1);
        let place = stack.places.get(top)?;
        let word = place.load(Relaxed);
        // Release, as every value of it: a thief that reads this one sees the places of the words
        // before as empty.
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
        // Nothing is taken without an exchange from here on. Release: as in `pop`.
        self.taking.store(0, Release);
        let stack = &self.stacks[class.index()];
        let mut top = stack.top.load(Relaxed).min(PLACES);
        while top > 0 {
            top -= 1;
            // Acquire: pairs with the release in `push`, of this thread or the one that owned the
            // slot before it. AcqRel is not needed: the next `push` releases.
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

    /// Keeps a region, if its class has a place and the lease covers it. Only the owner calls this.
    #[inline]
    pub fn push(&self, class: SizeClass, region: Region) -> bool {
        let stack = &self.stacks[class.index()];
        let (top, cached) = (stack.top.load(Relaxed), self.cached.load(Relaxed));
        // `cached` cannot overflow: it is at most the size of the address space.
        if top >= PLACES || cached + class.bytes() > self.lease.load(Relaxed) {
            return false;
        }
        // Release: what this thread did with the region happens before its next user's accesses.
        stack.places[top].store(region.0, Release);
        stack.top.store(top + 1, Relaxed);
        self.cached.store(cached + class.bytes(), Relaxed);
        true
    }

    /// Makes room for what was freed later: gives away the older half of the regions of a class,
    /// from the oldest on, and moves the others down; whether there was any. Only the owner calls
    /// this.
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
                // Release: a thief's acquire must see what this region's last user did. The place
                // is empty: this thread has just emptied it or one above, and nobody else fills
                // any.
                stack.places[kept].store(word, Release);
                kept += 1;
            }
        }
        stack.top.store(kept, Relaxed);
        given > 0
    }

    /// Counts again after thefts; whether there were any. Only the owner calls this.
    pub fn settle(&self) -> bool {
        // Acquire: pairs with the release in `steal_if`, so that the place is counted as empty.
        let robbed = self.robbed.swap(false, Acquire);
        if robbed {
            self.recount();
        }
        robbed
    }

    /// Whether the class has a place left.
    pub fn has_place(&self, class: SizeClass) -> bool {
        self.stacks[class.index()].top.load(Relaxed) < PLACES
    }

    pub fn cached(&self) -> usize {
        self.cached.load(Relaxed)
    }

    pub fn lease(&self) -> usize {
        self.lease.load(Relaxed)
    }

    /// Borrows from the cap for one more region of the class, within a budget for the whole slot;
    /// whether that region is covered then. Only the owner calls this.
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
        // Relaxed: a count. Where the lease was revoked since it was read, and counted again, the
        // step on top of it might exceed the budget.
        let lent = self
            .lease
            .compare_exchange(lease, lease + step, Relaxed, Relaxed);
        if lent.is_err() {
            cap.unlease(step);
        }
        lent.is_ok()
    }

    /// Gives the whole lease back to the cap; the owner puts nothing in from then on.
    pub fn end_lease(&self, cap: &Cap) {
        cap.unlease(self.lease.swap(0, Relaxed));
    }

    /// Gives back to the cap what the lease covers beyond what the slot holds. Any thread may call
    /// this.
    ///
    /// Regions that the owner is just putting in, while it still sees the lease as it was, may be
    /// missed; the owner finds its lease too small the next time, and borrows for those too.
    pub fn revoke(&self, cap: &Cap) {
        let before = self.lease.swap(0, Relaxed);
        let held = self.held();
        // The cap counts it before the lease covers it: whoever takes the lease back meanwhile must
        // not take from the cap what is not in it yet. The slot may hold more than its lease was.
        cap.admit(held);
        // The owner may have borrowed meanwhile, for all that it holds: that is not lent twice.
        let lent = self.lease.fetch_max(held, Relaxed);
        cap.unlease(before + lent.min(held));
    }

    /// When the owner last took a region, in milliseconds.
    #[inline]
    pub fn clock(&self) -> u64 {
        self.clock.load(Relaxed) as u64
    }

    #[inline]
    pub fn set_clock(&self, now: u64) {
        self.clock.store(now as usize, Relaxed);
    }

    /// Makes the owner exchange words from now on. Returns the word that it may be taking without
    /// at this moment, which is the owner's, or zero; `None` where the system makes no fence.
    fn share(&self) -> Option<usize> {
        // Acquire: pairs with the release below, or in `claim`: what was seen there holds here.
        if self.shared.load(Acquire) {
            return Some(0);
        }
        // Relaxed: the fence orders it before the look at `taking`.
        self.wanted.store(true, Relaxed);
        // Pairs with the light fence in `pop`. What comes before it there is seen below; what comes
        // after it sees `wanted`.
        if !heavy_fence() {
            return None;
        }
        // Acquire: pairs with the release in `pop`.
        let taking = self.taking.load(Acquire);
        if taking == 0 {
            // Release: see above.
            self.shared.store(true, Release);
        }
        Some(taking)
    }

    /// Takes the region that the owner would use last. Any thread may call this.
    pub fn steal(&self, class: SizeClass) -> Option<Region> {
        self.steal_if(class, |_| true)
    }

    /// Takes the first region, from the one that the owner would use last on, that is `wanted`.
    /// What the owner is just taking is no longer here.
    pub fn steal_if(&self, class: SizeClass, wanted: impl Fn(Region) -> bool) -> Option<Region> {
        for place in &self.stacks[class.index()].places {
            let word = place.load(Relaxed);
            if word == 0 || !wanted(Region(word)) || word == self.share()? {
                continue;
            }
            // Acquire: pairs with the release in `push`.
            if place.compare_exchange(word, 0, Acquire, Relaxed).is_ok() {
                // Release: see `settle`.
                self.robbed.store(true, Release);
                return Some(Region(word));
            }
        }
        None
    }

    /// Regions of a class in this cache, as far as anybody can tell.
    pub fn count(&self, class: SizeClass) -> usize {
        self.stacks[class.index()].filled().count()
    }

    /// Bytes in this cache, as far as anybody can tell.
    pub fn held(&self) -> usize {
        let classes = (0..CLASSES).filter_map(SizeClass::of_index);
        classes.map(|class| class.bytes() * self.count(class)).sum()
    }

    /// Makes the calling thread the owner of a slot that nobody owns.
    pub fn claim(&self) -> bool {
        // Relaxed first: most slots are taken. AcqRel: pairs with `leave` of the owner before.
        if self.owned.load(Relaxed) || self.owned.swap(true, AcqRel) {
            return false;
        }
        if !can_fence() {
            // Thieves could not make this thread exchange words, and so it does from the beginning.
            // Release: pairs with the acquire in `share`; what the owner before took is seen there.
            self.wanted.store(true, Relaxed);
            self.shared.store(true, Release);
        }
        // The owner before may have vanished in a fork.
        self.recount();
        true
    }

    /// Finds `top` and `cached` from the places.
    fn recount(&self) {
        for stack in &self.stacks {
            let top = stack.filled().next_back().map_or(0, |at| at + 1);
            stack.top.store(top, Relaxed);
        }
        self.cached.store(self.held(), Relaxed);
    }

    /// Gives up the slot of a thread that did not come along into the child of a fork. Its lease is
    /// what is in it, which the cap must count anew.
    pub fn abandon(&self) {
        // Relaxed: the child has one thread. The region that was being taken is lost, or still
        // here.
        self.taking.store(0, Relaxed);
        self.lease.store(self.held(), Relaxed);
        self.leave();
    }

    /// Readies the slot of the thread that is alone in the child of a fork. It has no lease, so
    /// that what is freed next takes the slow path and pays for all that is here; the cap must be
    /// counted anew.
    pub fn outlive(&self) {
        // Relaxed: as above. A thief that did not come along may have taken a region and not yet
        // said so.
        self.lease.store(0, Relaxed);
        self.robbed.store(true, Relaxed);
    }

    /// Whether the slot has an owner, who looks after its lease.
    pub fn is_owned(&self) -> bool {
        // Acquire: pairs with the release in `leave`: who sees that the owner has left sees its
        // places as it left them.
        self.owned.load(Acquire)
    }

    /// Gives the slot up.
    pub fn leave(&self) {
        // Release: pairs with `claim`, which must see the owner's words.
        self.owned.store(false, Release);
    }
}
