//! Slabs and their bitmaps of free blocks. The bitmaps lie out of band: the code of slabs reads and
//! writes no byte of a block.
//!
//! The lock of a slab's bin guards the whole slab except its head and its bin. A [`SlabRef`] gives
//! access only to the head and the bin, and a
//! [`LockedSlab`](crate::slabs::partial::held::LockedSlab) to the rest.

use core::cell::Cell;
use core::mem::offset_of;
use core::ops::Deref;
use core::ptr::{NonNull, null_mut};
use heapdrome_pages::atomic::{AtomicPtr, Ordering::Relaxed};

use crate::misuse::Misuse;
use crate::size_class::{Geometry, SizeClass, UNIT};
use crate::slabs::bit_runs::{bits_of, fill, only_run, run_of};
use crate::units::descriptor::{DESCRIPTOR, DescriptorRef, Head};

/// Number of bitmap words within a descriptor: enough for blocks of at least 128 bytes.
const INLINE_WORDS: usize = 8;

/// Number of bitmap words for a unit of the smallest blocks. No slab needs more.
pub(super) const MOST_WORDS: usize = UNIT / 16 / 64;

/// Time at which blocks were last taken from a slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Drawn {
    /// Before the last purge of the slab; never, if the slab was not purged yet.
    NotSincePurge = 0,
    /// After the last purge, but before the last scan by a purging thread.
    BeforeLook,
    /// After the last scan by a purging thread.
    SinceLook,
}

/// Location of a slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Place {
    /// In no bin: the slab is between two bins, or no slab begins at the unit.
    Nowhere = 0,
    /// Slab without free blocks. In no list.
    Full,
    /// Slab from which the bin hands out blocks. In no list.
    Active,
    /// In one of its bin's lists.
    Listed,
    /// Removed from the lists during a purge of its free pages. It stays in its bin even if it
    /// becomes empty. Threads may give blocks back, but take none.
    Claimed,
}

/// Placeholder for a slab's bin. The layers above define bins.
#[derive(Debug)]
pub(super) struct Owner(());

/// Slab, stored in the descriptor of its first unit.
///
/// Invariants (see [`check`](Self::check)): `free` is the number of set bits, and `least` is no
/// larger; bits beyond the number of blocks are clear; no word before `hint` has a set bit.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Slab {
    head: Head,
    bin: AtomicPtr<Owner>,
    pub(super) next: Cell<Option<SlabRef>>,
    pub(super) prev: Cell<Option<SlabRef>>,
    /// One bit for each block, set while the block is free.
    bits: Cell<*mut Cell<u64>>,
    /// Number of free blocks.
    pub(super) free: Cell<u16>,
    /// Minimum number of free blocks at which a free may move the slab to another list or out of
    /// its bin. A free that leaves fewer changes only the bitmap and the counts.
    pub(super) settled: Cell<u16>,
    /// First word of the bitmap that may have a set bit.
    hint: Cell<u16>,
    /// Index of the list that the slab is in; valid while the slab is listed.
    pub(super) bucket: Cell<u8>,
    pub(super) place: Cell<Place>,
    /// Time at which blocks were last taken, for purging.
    pub(super) drawn: Cell<Drawn>,
    /// Minimum number of free blocks since a purging thread last scanned the slab. Blocks are taken
    /// from the lowest address up, so at least this many free blocks at the highest addresses
    /// stayed idle.
    pub(super) least: Cell<u16>,
    /// Number of free blocks at the highest addresses that are purged. May be too large after
    /// blocks were taken: a block freed after the purge may count in place of a taken one.
    pub(super) purged: Cell<u16>,
    /// Number of free blocks at the highest addresses that are due for a purge.
    pub(super) due: Cell<u16>,
    inline: [Cell<u64>; INLINE_WORDS],
}

const _: () = assert!(size_of::<Slab>() == DESCRIPTOR && offset_of!(Slab, head) == 0);

/// Handle of a slab's descriptor, which is never freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct SlabRef(DescriptorRef);

impl From<DescriptorRef> for SlabRef {
    #[inline]
    fn from(descriptor: DescriptorRef) -> Self {
        Self(descriptor)
    }
}

impl Deref for SlabRef {
    type Target = Head;

    #[inline]
    fn deref(&self) -> &Head {
        &self.0
    }
}

impl SlabRef {
    /// Returns the descriptor of the first unit.
    pub(super) const fn descriptor(self) -> DescriptorRef {
        self.0
    }

    /// Returns the memory of the descriptor, which is never freed. All-zero memory is a valid slab.
    #[inline]
    pub(super) const fn as_ptr(self) -> NonNull<Slab> {
        self.0.as_ptr().cast()
    }

    /// Returns the bin of the slab; null if the descriptor never was a slab. The slab may move to
    /// another bin unless the caller holds the bin's lock.
    #[inline]
    pub(super) fn owner(self) -> *mut Owner {
        // SAFETY: descriptors are never freed. Relaxed: the caller holds the lock of the bin with
        // which it compares the result, or locks the bin and then checks again.
        unsafe { (*self.as_ptr().as_ptr()).bin.load(Relaxed) }
    }
}

impl Slab {
    /// Turns the descriptor into an empty slab of the run that its head describes. `external` is
    /// the bitmap, or null if the descriptor's own words suffice.
    ///
    /// # Safety
    ///
    /// The run and `external` belong to the caller. `external` has as many words as the class
    /// needs, or is null if the descriptor's own words suffice.
    pub(super) unsafe fn start(&self, class: SizeClass, external: *mut u64) {
        let shape = class.geometry();
        let bits = if external.is_null() {
            self.inline.as_ptr().cast_mut()
        } else {
            external.cast()
        };
        self.bits.set(bits);
        self.free.set(shape.blocks);
        self.hint.set(0);
        self.drawn.set(Drawn::NotSincePurge);
        self.least.set(0);
        self.purged.set(0);
        self.due.set(0);
        for word in 0..shape.words() {
            let valid = usize::from(shape.blocks) - word * 64;
            self.word(word).set(!0 >> (64 - valid.min(64)));
        }
    }

    /// Returns the bitmap if it lies outside the descriptor, else null.
    pub(super) fn external_bits(&self) -> *mut u64 {
        let bits = self.bits.get();
        let is_own = core::ptr::eq(bits, self.inline.as_ptr());
        if is_own { null_mut() } else { bits.cast() }
    }

    #[inline]
    pub(super) fn class(&self) -> SizeClass {
        self.head.class()
    }

    /// Returns whether the class's bitmap does not fit into a descriptor.
    pub(super) const fn needs_external(shape: &Geometry) -> bool {
        shape.words() > INLINE_WORDS
    }

    /// Sets the bin of the slab.
    pub(super) fn set_owner(&self, bin: *mut Owner) {
        // Relaxed: readers take the bin's lock and then check again.
        self.bin.store(bin, Relaxed);
    }

    /// Returns whether all blocks are free.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.free.get() == self.class().geometry().blocks
    }

    /// Records that the slab is in no list, and in no bin.
    pub(super) fn leave(&self) {
        self.place.set(Place::Nowhere);
        self.settled.set(0);
    }

    /// Returns a word of the bitmap.
    #[inline(always)]
    pub(super) fn word(&self, index: usize) -> &Cell<u64> {
        debug_assert!(index < self.class().geometry().words());
        // SAFETY: the bitmap has a bit for each block of the class, and callers pass the index of a
        // word with such a bit.
        unsafe { &*self.bits.get().add(index) }
    }

    /// Takes the free blocks with the lowest addresses into the first slots, in descending order. A
    /// magazine hands out its last slot first, so the program gets ascending addresses. Returns the
    /// number of blocks.
    #[inline(always)]
    pub(super) fn take(&self, slots: &mut [*mut u8]) -> usize {
        let taken = slots.len().min(usize::from(self.free.get()));
        let size = self.class().size();
        let base = self.head.base();
        // Splitting the remaining slice at its end avoids bounds checks.
        let mut rest = &mut slots[..taken];
        let mut word = usize::from(self.hint.get());
        while !rest.is_empty() {
            let mut free = self.word(word).get();
            let first = base.wrapping_add(word * 64 * size);
            if let Some(run) = only_run(free) {
                let count = run.length.min(rest.len());
                let fewer = rest.len() - count;
                let (others, places) = core::mem::take(&mut rest).split_at_mut(fewer);
                fill(places, first.wrapping_add(run.first * size), size);
                rest = others;
                free &= !bits_of(run.first, count);
            }
            while free != 0
                && let Some((place, others)) = core::mem::take(&mut rest).split_last_mut()
            {
                *place = first.wrapping_add(free.trailing_zeros() as usize * size);
                rest = others;
                free &= free - 1;
            }
            self.word(word).set(free);
            word += usize::from(free == 0);
        }
        self.note_taken(taken, word);
        self.checked();
        taken
    }

    /// Takes the free block with the lowest address. At least one block must be free.
    #[inline(always)]
    pub(super) fn take_one(&self) -> *mut u8 {
        let mut word = usize::from(self.hint.get());
        while self.word(word).get() == 0 {
            word += 1;
        }
        let free = self.word(word).get();
        let index = word * 64 + free.trailing_zeros() as usize;
        let left = free & (free - 1);
        self.word(word).set(left);
        self.note_taken(1, word + usize::from(left == 0));
        self.checked();
        self.head.base().wrapping_add(index * self.class().size())
    }

    /// Records that blocks were taken; `hint` is the first bitmap word that may have a set bit now.
    #[inline(always)]
    fn note_taken(&self, taken: usize, hint: usize) {
        let free = self.free.get() - taken as u16;
        self.hint.set(hint as u16);
        self.free.set(free);
        self.least.set(self.least.get().min(free));
        self.drawn.set(Drawn::SinceLook);
    }

    /// Takes back one block if the slab can stay where it is: in its list, active, or claimed.
    /// Otherwise, or if the pointer is not an allocated block, does nothing and returns false.
    #[inline(always)]
    pub(super) fn give_one(&self, block: *mut u8) -> bool {
        let free = self.free.get() + 1;
        let shape = self.class().geometry();
        let offset = block.addr().wrapping_sub(self.head.base().addr());
        if free >= self.settled.get() {
            return false;
        }
        let Some(index) = shape.block_at(offset) else {
            return false;
        };
        let word = self.word(index / 64);
        let bit = 1 << (index % 64);
        if word.get() & bit != 0 {
            return false;
        }
        word.set(word.get() | bit);
        self.free.set(free);
        self.hint.set(self.hint.get().min((index / 64) as u16));
        self.checked();
        true
    }

    /// Takes back the blocks at the start of `blocks` that lie in this slab. Returns their number,
    /// at least one.
    ///
    /// # Errors
    ///
    /// A pointer is not an allocated block. Earlier blocks were taken back, except those in the
    /// same run of adjacent blocks.
    pub(super) fn give(&self, blocks: &[*mut u8]) -> Result<usize, Misuse> {
        let (base, shape) = (self.head.base().addr(), self.class().geometry());
        let mut lowest = usize::MAX;
        let mut done = 0;
        let mut outcome = Ok(());
        while let Some(block) = blocks.get(done) {
            let offset = block.addr().wrapping_sub(base);
            let within = offset < usize::from(shape.units) * UNIT;
            if !within && done != 0 {
                break;
            }
            // A retired slab has no units, and thus no blocks.
            let Some(index) = within.then(|| shape.block_at(offset)).flatten() else {
                outcome = Err(Misuse::NotABlock(block.addr()));
                break;
            };
            let run = run_of(&blocks[done..], shape, index);
            if let Err(index) = self.set_range(run.first, run.length) {
                outcome = Err(Misuse::DoubleFree(base + index * shape.size as usize));
                break;
            }
            lowest = lowest.min(run.first / 64);
            done += run.length;
        }
        self.free.set(self.free.get() + done as u16);
        let lowest = lowest.min(u16::MAX as usize) as u16;
        self.hint.set(self.hint.get().min(lowest));
        outcome?;
        self.checked();
        Ok(done)
    }

    /// Sets the bits of `count` blocks from `first` on.
    ///
    /// # Errors
    ///
    /// The lowest index whose bit was already set. Some of the other bits may have been set.
    #[inline]
    fn set_range(&self, first: usize, count: usize) -> Result<(), usize> {
        let mut index = first;
        let mut left = count;
        while left != 0 {
            let shift = index % 64;
            let here = left.min(64 - shift);
            let mask = bits_of(shift, here);
            let word = self.word(index / 64);
            let set = word.get() & mask;
            if set != 0 {
                return Err(index - shift + set.trailing_zeros() as usize);
            }
            word.set(word.get() | mask);
            index += here;
            left -= here;
        }
        Ok(())
    }

    /// Asserts the invariants in debug builds.
    #[inline(always)]
    fn checked(&self) {
        if cfg!(debug_assertions) {
            self.check();
        }
    }

    /// Asserts the invariants. The caller holds the lock of the slab's bin, or the slab is in no
    /// bin and belongs to the calling thread.
    ///
    /// # Panics
    ///
    /// If an invariant does not hold.
    pub(super) fn check(&self) {
        let shape = self.class().geometry();
        let mut free = 0;
        for word in 0..shape.words() {
            let bits = self.word(word).get();
            free += bits.count_ones();
            assert!(
                bits == 0 || word >= usize::from(self.hint.get()),
                "a free block before the hint"
            );
            let valid = usize::from(shape.blocks) - word * 64;
            assert!(
                valid >= 64 || bits >> valid == 0,
                "a free block beyond the last"
            );
        }
        assert_eq!(free, u32::from(self.free.get()), "the count of free blocks");
        assert!(
            self.least.get() <= self.free.get(),
            "fewer are free than ever were"
        );
    }
}
