//! Slots of a magazine: an array of pointers with a word before and behind it.

use core::cell::{Cell, RefCell};
use core::ops::Deref;
use core::ptr::{NonNull, null_mut};

use heapdrome_pages::{Lock, Pages};

use super::{MOST, Magazine};
use crate::heap::front::{FULL, Front, no_slots};
use crate::size_class::SizeClass;
use crate::slabs::free_blocks::{FreeBlock, FreeBlocks};
use crate::units::metadata::{Metadata, ThreadMetadata};

/// Number of words around the slots: null before the first slot, and [`FULL`] behind the last.
const FRAME: usize = 2;

/// Magazine of a class, together with the front that stores its top. Both belong to the calling
/// thread.
///
/// Invariant (see [`check`](Self::check)): the slots before the top hold free blocks of the class;
/// null precedes the first slot, and [`FULL`] follows the last slot that may hold a block.
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
    /// Joins a magazine with its front.
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

    /// Returns the number of blocks.
    pub fn length(self) -> usize {
        if self.slots.get().is_null() {
            return 0;
        }
        // The top is never before the first slot, so the difference is not negative.
        (self.front.top(self.class).addr() - self.slots.get().addr()) / size_of::<*mut u8>()
    }

    /// Refills an empty magazine, and pops the topmost block. `take` receives the first `want`
    /// slots, stores free blocks of the class in them from the start, and returns their number.
    /// Returns this number and the popped block, or 0 and null. `want` is at most the capacity.
    #[inline]
    pub fn refill(
        self,
        want: usize,
        take: impl FnOnce(&mut [*mut u8]) -> usize,
    ) -> (usize, *mut u8) {
        debug_assert!(self.length() == 0 && want <= self.capacity());
        let first = self.slots.get();
        // SAFETY: `want` is at most the number of slots, which are initialised words. No other code
        // uses them before the top is set, since the magazine is empty.
        let slots = unsafe { core::slice::from_raw_parts_mut(first, want) };
        let taken = take(slots);
        let Some(&topmost) = slots[..taken].last() else {
            return (0, null_mut());
        };
        // SAFETY: the slots before this top hold the other blocks that were taken. The front
        // belongs to this thread.
        unsafe { self.front.set_top(self.class, first.add(taken - 1)) };
        self.checked();
        (taken, topmost)
    }

    /// Pushes a free block of the class.
    ///
    /// # Errors
    ///
    /// The block, if there is no room.
    #[inline]
    pub fn push(self, block: FreeBlock) -> Result<(), FreeBlock> {
        debug_assert!(block.class() == self.class);
        let top = self.front.top(self.class);
        // SAFETY: the top points to FULL, or to a slot that precedes another slot or FULL. The
        // pushed block is a free block of the class, and the front belongs to this thread.
        unsafe {
            if *top == FULL {
                return Err(block);
            }
            *top = block.as_ptr();
            self.front.set_top(self.class, top.add(1));
        }
        Ok(())
    }

    /// Pushes free blocks of the class. Returns false, without any change, if they do not all fit.
    pub fn push_all(self, blocks: &mut FreeBlocks<'_>) -> bool {
        debug_assert!(blocks.class() == self.class);
        let (length, count) = (self.length(), blocks.count());
        if length + count > self.capacity() {
            return false;
        }
        // SAFETY: `length + count` is at most the capacity, so the slots from the top on have room
        // for all blocks, which are free blocks of the class. The front belongs to this thread.
        unsafe {
            let top = self.slots.get().add(length);
            top.copy_from_nonoverlapping(blocks.as_slice().as_ptr(), count);
            self.front.set_top(self.class, top.add(count));
        }
        self.checked();
        true
    }

    /// Pops the topmost block; null if there is none.
    #[inline]
    pub fn pop(self) -> *mut u8 {
        self.front.pop(self.class)
    }

    /// Removes the `count` oldest blocks and passes them to `give`. The magazine has at least
    /// `count` blocks.
    pub fn remove_oldest(self, count: usize, give: impl FnOnce(FreeBlocks<'_>)) {
        if count == 0 {
            return;
        }
        let length = self.length();
        debug_assert!(count <= length);
        let slots = self.slots.get();
        // SAFETY: the first `length` slots hold free blocks of the class, and `give` does not use
        // this magazine. The slots of removed blocks are then overwritten, or lie at or behind the
        // new top. The front belongs to this thread.
        unsafe {
            let oldest = core::slice::from_raw_parts_mut(slots, count);
            give(FreeBlocks::new(self.class, oldest));
            let rest = length - count;
            slots.copy_from(slots.add(count), rest);
            self.front.set_top(self.class, slots.add(rest));
        }
        self.checked();
    }

    /// Changes the number of slots to `capacity`, which is at least the number of blocks, and keeps
    /// the blocks. Returns false, without any change, if out of memory.
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
            // SAFETY: the array is zero and has one word before the slots, so null precedes the
            // first slot. Both arrays have at least `length` slots. The fast path uses the new
            // array once the top is set, so the old one can be freed. The front belongs to this
            // thread.
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

    /// Makes the magazine rest: it keeps no blocks until the next refill wakes it. The magazine
    /// must have slots and be empty.
    pub fn rest(self) {
        debug_assert!(self.capacity() != 0 && self.length() == 0);
        // FULL moves from behind the last slot to the first slot, to which the top points.
        self.put(self.capacity(), null_mut());
        self.put(0, FULL);
        self.resting.set(self.capacity.replace(0));
        self.checked();
    }

    /// Restores the slots that the magazine had before it rested; returns false if it did not rest.
    /// The magazine must be empty.
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

    /// Frees the slots. The magazine must be empty.
    pub fn discard(self, own: &RefCell<ThreadMetadata>) {
        debug_assert!(self.length() == 0);
        // SAFETY: the front belongs to this thread. Its new top belongs to a magazine without
        // slots, so the fast path no longer uses the array.
        unsafe {
            self.front.set_top(self.class, no_slots());
            self.free_array(own);
        }
        self.magazine.forget();
    }

    /// Writes a slot, or the word behind the last slot.
    fn put(self, slot: usize, word: *mut u8) {
        self.words()[slot + 1].set(word);
    }

    /// Returns the whole array: the word before the slots, the slots, and at least one more word.
    /// Empty if there is no array.
    fn words(self) -> &'a [Cell<*mut u8>] {
        let Some(slots) = NonNull::new(self.slots.get()) else {
            return &[];
        };
        // SAFETY: the array begins a word before the slots, has 2^order words, and belongs to this
        // thread. All other accesses use cells or raw pointers.
        unsafe { core::slice::from_raw_parts(slots.as_ptr().sub(1).cast(), 1 << self.order.get()) }
    }

    /// Asserts the invariant.
    ///
    /// # Panics
    ///
    /// If the invariant does not hold.
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

    /// Frees the array, if there is one.
    ///
    /// # Safety
    ///
    /// The fast path does not use the array.
    unsafe fn free_array(self, own: &RefCell<ThreadMetadata>) {
        if self.slots.get().is_null() {
            return;
        }
        let bytes = size_of::<*mut u8>() << self.order.get();
        // SAFETY: the array begins a word before the slots, and was allocated from `own` with this
        // size. By this function's contract, the fast path does not use it.
        unsafe {
            let array = NonNull::new_unchecked(self.slots.get().sub(1).cast());
            own.borrow_mut().free(array, bytes);
        }
    }
}
