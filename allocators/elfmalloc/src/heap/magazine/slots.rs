//! The slots of a magazine: an array of pointers with a word before and behind it.

use core::cell::{Cell, RefCell};
use core::ops::Deref;
use core::ptr::{NonNull, null_mut};

use heapdrome_pages::{Lock, Pages};

use super::{MOST, Magazine};
use crate::heap::front::{FULL, Front, no_slots};
use crate::size_class::SizeClass;
use crate::slabs::free_blocks::{FreeBlock, FreeBlocks};
use crate::units::metadata::{Metadata, ThreadMetadata};

/// Words around the slots: the null before the first, and the [`FULL`] behind the last.
const FRAME: usize = 2;

/// The magazine of a class, with the front that has its top. Both are the calling thread's.
///
/// Invariant (see [`check`](Self::check)): the slots before the top hold free blocks of the class;
/// before the first lies null, behind the last that is in use [`FULL`].
#[derive(Clone, Copy, Debug)]
pub struct MagazineRef<'a> {
    magazine: &'a Magazine,
    front: &'a Front,
    class: SizeClass,
}

impl Deref for MagazineRef<'_> {
    type Target = Magazine;

    #[inline]
    fn deref(&self) -> &Magazine {
        self.magazine
    }
}

impl<'a> MagazineRef<'a> {
    /// Puts a magazine and its front together.
    #[inline]
    pub(in crate::heap) const fn new(
        front: &'a Front,
        magazine: &'a Magazine,
        class: SizeClass,
    ) -> Self {
        Self {
            magazine,
            front,
            class,
        }
    }

    /// Number of blocks.
    pub fn length(self) -> usize {
        if self.slots.get().is_null() {
            return 0;
        }
        // Slots are words; the top is never before the first.
        (self.front.top(self.class).addr() - self.slots.get().addr()) / size_of::<*mut u8>()
    }

    /// Fills an empty magazine by `take`, which puts free blocks of the class into the first of
    /// `want` slots, at most as many as there are, and returns how many. Returns that number, and
    /// the topmost of them, which is taken out.
    #[inline]
    pub fn refill(
        self,
        want: usize,
        take: impl FnOnce(&mut [*mut u8]) -> usize,
    ) -> (usize, *mut u8) {
        debug_assert!(self.length() == 0 && want <= self.capacity());
        let first = self.slots.get();
        // SAFETY: that many slots are there, and hold words; no other code uses them before the top
        // is set: the magazine is empty.
        let slots = unsafe { core::slice::from_raw_parts_mut(first, want) };
        let taken = take(slots);
        let Some(&topmost) = slots[..taken].last() else {
            return (0, null_mut());
        };
        // SAFETY: the slots before the topmost hold the other blocks that were taken.
        unsafe { self.front.set_top(self.class, first.add(taken - 1)) };
        self.checked();
        (taken, topmost)
    }

    /// Puts a free block of the class on top.
    ///
    /// # Errors
    ///
    /// The block, where there is no room.
    #[inline]
    pub fn push(self, block: FreeBlock) -> Result<(), FreeBlock> {
        debug_assert!(block.class() == self.class);
        let top = self.front.top(self.class);
        // SAFETY: a top points to a slot, behind which there is another or the FULL, or to the
        // FULL.
        unsafe {
            if *top == FULL {
                return Err(block);
            }
            *top = block.as_ptr();
            self.front.set_top(self.class, top.add(1));
        }
        Ok(())
    }

    /// Puts free blocks of the class on top; false where there is no room for all, and then nothing
    /// has happened.
    pub fn push_all(self, blocks: &mut FreeBlocks<'_>) -> bool {
        debug_assert!(blocks.class() == self.class);
        let (length, count) = (self.length(), blocks.count());
        if length + count > self.capacity() {
            return false;
        }
        // SAFETY: there is room for the blocks behind those that are there.
        unsafe {
            let top = self.slots.get().add(length);
            top.copy_from_nonoverlapping(blocks.as_slice().as_ptr(), count);
            self.front.set_top(self.class, top.add(count));
        }
        self.checked();
        true
    }

    /// Takes the block on top out.
    #[inline]
    pub fn pop(self) -> *mut u8 {
        self.front.pop(self.class)
    }

    /// Takes the `count` blocks out that lie longest in the magazine, of which there are as many,
    /// by `give`.
    pub fn remove_oldest(self, count: usize, give: impl FnOnce(FreeBlocks<'_>)) {
        if count == 0 {
            return;
        }
        let length = self.length();
        debug_assert!(count <= length);
        let slots = self.slots.get();
        // SAFETY: the slots to the top hold blocks; those that are given are overwritten or behind
        // the top afterwards.
        unsafe {
            let oldest = core::slice::from_raw_parts_mut(slots, count);
            give(FreeBlocks::new(self.class, oldest));
            let rest = length - count;
            slots.copy_from(slots.add(count), rest);
            self.front.set_top(self.class, slots.add(rest));
        }
        self.checked();
    }

    /// Gives the magazine `capacity` slots, at least as many as it has blocks; the blocks stay.
    /// False where there is no memory, and then nothing has changed.
    pub fn resize(
        self,
        capacity: usize,
        own: &RefCell<ThreadMetadata>,
        metadata: &Lock<Metadata>,
        pages: &impl Pages,
    ) -> bool {
        let length = self.length();
        debug_assert!(length <= capacity && capacity <= MOST && self.resting() == 0);
        if capacity + FRAME > 1 << self.order.get() {
            let words = (capacity + FRAME).next_power_of_two().max(8);
            let bytes = words * size_of::<*mut u8>();
            let array = own.borrow_mut().allocate(metadata, pages, bytes);
            let Some(array) = array else {
                return false;
            };
            // SAFETY: the array has a word more before the slots, and is zero, so that the word
            // before the first slot is null; both arrays hold that many slots. From here on the
            // fast path uses the new one.
            unsafe {
                let slots = array.as_ptr().cast::<*mut u8>().add(1);
                if length != 0 {
                    slots.copy_from_nonoverlapping(self.slots.get(), length);
                }
                self.front.set_top(self.class, slots.add(length));
                self.free_array(own);
                self.slots.set(slots);
            }
            self.order.set(words.ilog2() as u8);
        } else if self.capacity() != 0 {
            self.put(self.capacity(), null_mut());
        }
        self.put(capacity, FULL);
        self.capacity.set(capacity as u16);
        self.checked();
        true
    }

    /// Stops keeping blocks until it is refilled. The magazine holds none.
    pub fn rest(self) {
        debug_assert!(self.capacity() != 0 && self.length() == 0);
        // The FULL stands behind the slots in use. Where the first is, the top is too.
        self.put(self.capacity(), null_mut());
        self.put(0, FULL);
        self.resting.set(self.capacity.replace(0));
        self.checked();
    }

    /// Uses the slots again that it had before it rested; false where it did not rest. The magazine
    /// holds no block.
    pub fn wake(self) -> bool {
        if self.resting() == 0 {
            return false;
        }
        self.put(0, null_mut());
        self.put(self.resting(), FULL);
        self.capacity.set(self.resting.replace(0));
        self.checked();
        true
    }

    /// Gives the slots back. The magazine is empty.
    pub fn discard(self, own: &RefCell<ThreadMetadata>) {
        debug_assert!(self.length() == 0);
        // SAFETY: there is no slot to take a block from or to put one into; the fast path has
        // stopped using the array.
        unsafe {
            self.front.set_top(self.class, no_slots());
            self.free_array(own);
        }
        self.magazine.forget();
    }

    /// Writes a slot, or the word behind the last one.
    fn put(self, slot: usize, word: *mut u8) {
        self.words()[slot + 1].set(word);
    }

    /// The whole array: the word before the slots, these, and at least a word more. Empty where
    /// there is none.
    fn words(self) -> &'a [Cell<*mut u8>] {
        let Some(slots) = NonNull::new(self.slots.get()) else {
            return &[];
        };
        // SAFETY: the array begins a word before the slots, has two to the power of its order
        // words, and is this thread's. All that is made of it is this, or pointers.
        unsafe { core::slice::from_raw_parts(slots.as_ptr().sub(1).cast(), 1 << self.order.get()) }
    }

    /// Asserts the invariant.
    ///
    /// # Panics
    ///
    /// Where it does not hold.
    pub fn check(self) {
        let Some((before, slots)) = self.words().split_first() else {
            assert!(self.capacity() == 0 && self.resting() == 0, "no slots");
            assert_eq!(self.front.top(self.class), no_slots());
            return;
        };
        let (length, capacity) = (self.length(), self.capacity());
        assert!(length <= capacity, "more blocks than slots");
        assert!(before.get().is_null(), "no null before the first slot");
        assert_eq!(slots[capacity].get(), FULL, "behind the last slot");
        let blocks = slots[..length].iter().map(Cell::get);
        assert!(
            blocks
                .clone()
                .all(|block| !block.is_null() && block != FULL)
        );
        assert!(
            capacity == 0 || self.resting() == 0,
            "it rests, and has slots"
        );
    }

    /// Asserts the invariant in debug builds.
    #[inline(always)]
    fn checked(self) {
        if cfg!(debug_assertions) {
            self.check();
        }
    }

    /// # Safety
    ///
    /// The fast path does not use the array.
    unsafe fn free_array(self, own: &RefCell<ThreadMetadata>) {
        if self.slots.get().is_null() {
            return;
        }
        let bytes = size_of::<*mut u8>() << self.order.get();
        // SAFETY: the array begins a word before the slots, and was allocated with this size.
        unsafe {
            let array = NonNull::new_unchecked(self.slots.get().sub(1).cast());
            own.borrow_mut().free(array, bytes);
        }
    }
}
