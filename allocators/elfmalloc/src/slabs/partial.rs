//! Slabs of a bin: the active slab, a list of partial slabs, and a list of empty slabs.

pub(super) mod held;
pub(super) mod purge;

use core::ptr::NonNull;

use held::{Detached, DetachedList, LockedSlab, detached, locked};

use crate::misuse::Misuse;
use crate::slabs::slab::{Place, SlabRef};

/// Number of lists: one of partial slabs, and one of empty slabs.
pub(super) const BUCKETS: usize = 2;
/// Index of the list of empty slabs.
const EMPTY: usize = 1;

/// Slabs of a bin, guarded by its lock. Slabs without a free block are in no list until one of
/// their blocks is given back. Slabs that are claimed for a purge are in no list either, and their
/// free blocks cannot be taken.
#[derive(Debug)]
pub struct Slabs {
    pub(super) active: Option<SlabRef>,
    pub(super) buckets: [Option<SlabRef>; BUCKETS],
    /// Number of slabs in the lists.
    listed: u32,
    /// Number of slabs that belong to the bin, including full and claimed ones.
    pub slabs: u32,
    /// Number of slabs in the list of empty slabs.
    pub empties: u32,
    /// Minimum number of empty slabs since the last call of
    /// [`take_idle_empties`](Self::take_idle_empties).
    low: u32,
    /// Number of times that a thread took blocks from the bin.
    pub refills: u64,
    /// Number of blocks that were given back by threads that used another bin at the time, or none.
    pub remote_frees: u64,
}

// SAFETY: the pointers refer to descriptors, which any thread may use while it holds the bin's
// lock.
unsafe impl Send for Slabs {}

/// Result of giving blocks back.
#[derive(Debug)]
pub(super) struct Given {
    /// Number of blocks that were taken back.
    pub(super) count: usize,
    /// The slab, if it has become empty and left the bin.
    pub(super) empty: Option<Detached>,
}

impl Slabs {
    pub(super) const fn new() -> Self {
        Self {
            active: None,
            buckets: [None; BUCKETS],
            listed: 0,
            slabs: 0,
            empties: 0,
            low: 0,
            refills: 0,
            remote_frees: 0,
        }
    }

    /// Takes blocks from the slabs of this bin into the first slots. Returns the number of blocks,
    /// which is less than the number of slots only if the bin has no free block left.
    pub fn take(&mut self, slots: &mut [*mut u8]) -> usize {
        let mut taken = 0;
        while taken < slots.len() {
            let more = self.take_from_one(&mut slots[taken..]);
            if more == 0 {
                break;
            }
            taken += more;
        }
        taken
    }

    /// Takes blocks from one slab into the first slots. `slots` must not be empty. Returns the
    /// number of blocks: 0 only if the bin has no free block.
    #[inline(always)]
    pub fn take_from_one(&mut self, slots: &mut [*mut u8]) -> usize {
        let taken = self.with_active(|slab| slab.take(slots));
        taken.unwrap_or(0)
    }

    /// Takes a block; `None` if the bin has no free block.
    #[inline]
    pub fn take_one(&mut self) -> Option<NonNull<u8>> {
        let block = self.with_active(|slab| slab.take_one());
        block.and_then(NonNull::new)
    }

    /// Calls `take` with the active slab. If there is none, first activates a partial slab, or else
    /// an empty slab. Returns `None` if the bin has no free block.
    #[inline(always)]
    fn with_active<T>(&mut self, take: impl FnOnce(LockedSlab<'_>) -> T) -> Option<T> {
        let slab = match self.active {
            Some(slab) => locked(slab),
            None => {
                let slab = self.first_listed()?;
                self.unlink(slab);
                self.activate(slab);
                locked(slab)
            }
        };
        let taken = take(slab);
        if slab.free.get() == 0 {
            slab.place.set(Place::Full);
            slab.settled.set(0);
            self.active = None;
        }
        Some(taken)
    }

    /// Returns access to a slab of this bin, valid until the slab leaves the bin.
    #[inline]
    pub(super) fn locked(&self, slab: SlabRef) -> LockedSlab<'_> {
        locked(slab)
    }

    /// Gives the blocks at the start of `blocks` that lie in `slab` back to it. The slab belongs to
    /// this bin. `keep` says whether the slab stays in the bin if it becomes empty; a slab that is
    /// claimed for a purge always stays.
    ///
    /// # Errors
    ///
    /// A pointer is not an allocated block.
    pub(super) fn give(
        &mut self,
        slab: SlabRef,
        blocks: &[*mut u8],
        keep: bool,
    ) -> Result<Given, Misuse> {
        let held = locked(slab);
        let count = held.give(blocks)?;
        let place = held.place.get();
        let empty = held.is_empty() && place != Place::Claimed;
        // Whether the slab is in no list, and must be added to one if it stays in the bin.
        let loose = match place {
            Place::Listed if empty || bucket_of(held) != held.bucket.get() => {
                self.unlink(slab);
                true
            }
            Place::Active if empty => {
                self.active = None;
                true
            }
            place => place == Place::Full,
        };
        if empty && !keep {
            let empty = Some(self.let_go(slab));
            return Ok(Given { count, empty });
        }
        if loose {
            self.link(slab);
        }
        Ok(Given { count, empty: None })
    }

    /// Removes from the bin a slab that is in none of its lists.
    pub(super) fn let_go(&mut self, slab: SlabRef) -> Detached {
        locked(slab).leave();
        self.slabs -= 1;
        detached(slab)
    }

    /// Removes a slab with free blocks from the bin, for another bin of the class; `None` if no
    /// slab has a free block.
    pub(super) fn detach(&mut self) -> Option<Detached> {
        let slab = match self.active.take() {
            Some(slab) => slab,
            None => {
                let slab = self.first_listed()?;
                self.unlink(slab);
                slab
            }
        };
        Some(self.let_go(slab))
    }

    /// Removes from the bin all slabs in its list of empty slabs.
    pub(super) fn take_empties(&mut self) -> DetachedList {
        self.take_some(self.empties)
    }

    /// Removes from the bin the empty slabs that have been idle since the last call.
    pub(super) fn take_idle_empties(&mut self) -> DetachedList {
        let taken = self.take_some(self.low);
        self.low = self.empties;
        taken
    }

    fn take_some(&mut self, count: u32) -> DetachedList {
        let mut taken = DetachedList::NONE;
        for _ in 0..count {
            let Some(slab) = self.buckets[EMPTY] else {
                break;
            };
            self.unlink(slab);
            taken.push(self.let_go(slab));
        }
        taken
    }

    /// Calls `visit` for every slab with a free block, except slabs that are claimed for a purge.
    fn each_partial(&self, mut visit: impl FnMut(LockedSlab<'_>)) {
        if let Some(slab) = self.active {
            visit(locked(slab));
        }
        if self.listed == 0 {
            return;
        }
        for first in self.buckets {
            let mut next = first;
            while let Some(slab) = next {
                visit(locked(slab));
                next = locked(slab).next.get();
            }
        }
    }

    /// Returns the number of free blocks, except those in slabs that are claimed for a purge.
    #[must_use]
    pub fn free_blocks(&self) -> usize {
        let mut free = 0;
        self.each_partial(|slab| free += usize::from(slab.free.get()));
        free
    }

    /// Asserts the invariants of the lists and the counts.
    ///
    /// # Panics
    ///
    /// If an invariant does not hold.
    pub fn check(&self) {
        let no_lists = self.buckets.iter().all(|first| first.is_none());
        assert_eq!(no_lists, self.listed == 0, "the count of listed slabs");
        let mut seen = 0;
        self.each_partial(|slab| {
            slab.check();
            assert!(slab.free.get() != 0, "a full slab in a list");
            let expected = if self.active == Some(slab.handle()) {
                Place::Active
            } else {
                Place::Listed
            };
            assert_eq!(slab.place.get(), expected);
            seen += 1;
        });
        let active = u32::from(self.active.is_some());
        assert_eq!(seen, self.listed + active, "the count of partial slabs");
        assert!(self.low <= self.empties && self.empties <= self.listed);
        assert!(self.slabs >= seen, "the count of slabs");
    }

    fn first_listed(&self) -> Option<SlabRef> {
        self.buckets.iter().find_map(|first| *first)
    }

    /// Makes a slab of this bin, which is in no list, the active slab. No slab may be active.
    pub(super) fn activate(&mut self, slab: SlabRef) {
        locked(slab).place.set(Place::Active);
        locked(slab).settled.set(slab.class().geometry().blocks);
        self.active = Some(slab);
    }

    /// Adds a slab of this bin, which is in no list, to the list of partial or of empty slabs.
    #[inline]
    pub(super) fn link(&mut self, slab: SlabRef) {
        let held = locked(slab);
        let bucket = bucket_of(held);
        let place = &mut self.buckets[usize::from(bucket)];
        held.bucket.set(bucket);
        held.place.set(Place::Listed);
        held.settled.set(slab.class().geometry().blocks);
        held.prev.set(None);
        held.next.set(*place);
        if let Some(first) = *place {
            locked(first).prev.set(Some(slab));
        }
        *place = Some(slab);
        self.empties += u32::from(usize::from(bucket) == EMPTY);
        self.listed += 1;
    }

    /// Removes a slab from its list.
    #[inline]
    pub(super) fn unlink(&mut self, slab: SlabRef) {
        let held = locked(slab);
        let (prev, next) = (held.prev.get(), held.next.get());
        let bucket = usize::from(held.bucket.get());
        match prev {
            None => self.buckets[bucket] = next,
            Some(prev) => locked(prev).next.set(next),
        }
        if let Some(next) = next {
            locked(next).prev.set(prev);
        }
        self.empties -= u32::from(bucket == EMPTY);
        self.low = self.low.min(self.empties);
        self.listed -= 1;
    }
}

/// Returns the index of the list for a slab: [`EMPTY`] if all blocks are free, else the list of
/// partial slabs.
#[inline]
fn bucket_of(slab: LockedSlab<'_>) -> u8 {
    u8::from(slab.is_empty())
}
