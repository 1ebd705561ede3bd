//! Magazines: how many blocks a thread keeps at hand, and where.

use core::cell::{Cell, RefCell};
use core::ptr::{NonNull, null_mut};

use heapdrome_pages::{Lock, Pages};

use crate::heap::depot::CHUNK;
use crate::heap::front::{FULL, Front, no_slots};
use crate::size_class::SizeClass;
use crate::slabs::free_blocks::{FreeBlock, FreeBlocks};
use crate::units::metadata::{Metadata, ThreadMetadata};

/// Slots of the largest magazine. When it is full, half of it goes to the depot: a chunk.
const MOST: usize = 2 * CHUNK;
/// Words around the slots: the null before the first, and the [`FULL`] behind the last.
const FRAME: usize = 2;
/// A magazine grows after so many slow paths.
const GROWS_AFTER: u8 = 4;

/// Blocks up to this size may have magazines of four times the limit.
const KEPT_BY_FOUR: usize = 16 << 10;

/// Slots that suffice for a thread that only allocates, or only frees, and bytes of blocks: when it has
/// nothing more to do they stay with it.
const ENOUGH_ONE_WAY: usize = 62;
const ENOUGH_BYTES_ONE_WAY: usize = 16 << 10;

/// What a slow path was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The magazine was empty.
    Refill,
    /// It was full.
    Flush,
}

/// What became of a magazine since it was last looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Since {
    /// No slow path was taken.
    Nothing,
    /// It was flushed.
    Flushed,
    /// It was refilled: what leaves it may be wanted again.
    Refilled,
}

/// What the fast path does not need to know of a magazine. Only its thread uses it.
#[derive(Debug)]
pub struct Magazine {
    /// The first slot; null where there are none yet.
    slots: Cell<*mut *mut u8>,
    /// Number of slots in use.
    capacity: Cell<u16>,
    /// Number of slots to be used again after the next refill; zero where the magazine does not rest.
    resting: Cell<u16>,
    /// The array has two to the power of this words, if there is one.
    order: Cell<u8>,
    events: Cell<u8>,
    last: Cell<Event>,
    since: Cell<Since>,
}

// A heap has one for each class, and slow paths read them.
const _: () = assert!(size_of::<Magazine>() == 16);

impl Magazine {
    /// No slots.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            slots: Cell::new(null_mut()),
            capacity: Cell::new(0),
            resting: Cell::new(0),
            order: Cell::new(0),
            events: Cell::new(0),
            last: Cell::new(Event::Refill),
            since: Cell::new(Since::Nothing),
        }
    }

    /// Forgets slots and blocks.
    pub fn forget(&self) {
        let none = Self::new();
        self.slots.swap(&none.slots);
        self.capacity.swap(&none.capacity);
        self.resting.swap(&none.resting);
        self.order.swap(&none.order);
        self.events.swap(&none.events);
        self.last.swap(&none.last);
        self.since.swap(&none.since);
    }

    /// Number of slots in use.
    #[inline]
    pub fn capacity(&self) -> usize {
        usize::from(self.capacity.get())
    }

    /// Notes a slow path. True if the magazine should grow: what was just filled has to be emptied, or
    /// the other way round. A thread that only allocates, or only frees, gains little by a larger
    /// one, and would just keep more. `class` is that of the blocks.
    pub fn note(&self, event: Event, class: SizeClass) -> bool {
        self.since.set(self.since.get().max(match event {
            Event::Refill => Since::Refilled,
            Event::Flush => Since::Flushed,
        }));
        if self.last.get() != event {
            self.events.set(self.events.get() + 2);
        } else if Self::next_capacity(self.capacity())
            <= ENOUGH_ONE_WAY.min(ENOUGH_BYTES_ONE_WAY / class.size())
        {
            self.events.set(self.events.get() + 1);
        }
        self.last.set(event);
        if self.events.get() < GROWS_AFTER {
            return false;
        }
        self.events.set(0);
        true
    }

    /// Whether the last slow path was for this.
    pub fn was(&self, event: Event) -> bool {
        self.last.get() == event
    }

    /// Whether it was refilled since it was last looked at.
    pub fn was_refilled(&self) -> bool {
        self.since.get() == Since::Refilled
    }

    /// Looks at the magazine: whether it has slots that no slow path needed since the last time, or none that a
    /// refill would have woken it for.
    pub fn look(&self) -> bool {
        let since = self.since.replace(Since::Nothing);
        let unused = since == Since::Nothing || self.resting() != 0 && since == Since::Flushed;
        !self.slots.get().is_null() && unused
    }

    /// Number of slots that it is to use again; none where it does not rest.
    pub fn resting(&self) -> usize {
        usize::from(self.resting.get())
    }

    /// The capacity to begin with.
    #[must_use]
    pub fn first_capacity(class: SizeClass, limit: usize) -> usize {
        let wanted = match class.size() {
            0..=512 => 14,
            513..=2048 => 6,
            2049..=4096 => 2,
            _ => 1,
        };
        wanted.min(Self::largest(class, limit))
    }

    /// The capacity to grow to.
    #[must_use]
    pub const fn next_capacity(capacity: usize) -> usize {
        capacity * 2 + 2
    }

    /// The largest capacity, where a magazine of small blocks may hold `limit` bytes. One of larger
    /// blocks may hold up to four times as much: a batch must be worth the way to the slabs. But what is
    /// kept of the largest would better serve other classes.
    #[must_use]
    pub fn largest(class: SizeClass, limit: usize) -> usize {
        let most = if class.size() > KEPT_BY_FOUR {
            limit
        } else {
            limit.saturating_mul(4)
        };
        let bytes = (class.size() * 256).clamp(limit, most);
        (bytes / class.size()).clamp(1, MOST)
    }
}

impl Default for Magazine {
    fn default() -> Self {
        Self::new()
    }
}

/// The magazine of a class, with the front that has its top. Both are the calling thread's.
///
/// Invariant: the slots before the top hold free blocks of the class; before the first lies null, behind the last
/// that is in use [`FULL`].
#[derive(Clone, Copy, Debug)]
pub struct MagazineRef<'a> {
    magazine: &'a Magazine,
    front: &'a Front,
    class: SizeClass,
}

impl core::ops::Deref for MagazineRef<'_> {
    type Target = Magazine;

    #[inline]
    fn deref(&self) -> &Magazine {
        self.magazine
    }
}

impl<'a> MagazineRef<'a> {
    /// Puts a magazine and its front together.
    #[inline]
    pub(super) const fn new(front: &'a Front, magazine: &'a Magazine, class: SizeClass) -> Self {
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

    /// Fills an empty magazine by `take`, which puts free blocks of the class into the first of `want` slots, at most as
    /// many as there are, and returns how many. Returns that number, and the topmost of them, which is taken out.
    #[inline]
    pub fn refill(
        self,
        want: usize,
        take: impl FnOnce(&mut [*mut u8]) -> usize,
    ) -> (usize, *mut u8) {
        debug_assert!(self.length() == 0 && want <= self.capacity());
        let first = self.slots.get();
        // SAFETY: that many slots are there, and hold words; no other code uses them before the top is set: the magazine
        // is empty.
        let slots = unsafe { core::slice::from_raw_parts_mut(first, want) };
        let taken = take(slots);
        let Some(&topmost) = slots[..taken].last() else {
            return (0, null_mut());
        };
        // SAFETY: the slots before the topmost hold the other blocks that were taken.
        unsafe { self.front.set_top(self.class, first.add(taken - 1)) };
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
        // SAFETY: a top points to a slot, behind which there is another or the FULL, or to the FULL.
        unsafe {
            if *top == FULL {
                return Err(block);
            }
            *top = block.as_ptr();
            self.front.set_top(self.class, top.add(1));
        }
        Ok(())
    }

    /// Puts free blocks of the class on top; false where there is no room for all, and then nothing has happened.
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
        true
    }

    /// Takes the block on top out.
    #[inline]
    pub fn pop(self) -> *mut u8 {
        self.front.pop(self.class)
    }

    /// Takes the `count` blocks out that lie longest in the magazine, of which there are as many, by `give`.
    pub fn remove_oldest(self, count: usize, give: impl FnOnce(FreeBlocks<'_>)) {
        if count == 0 {
            return;
        }
        let length = self.length();
        debug_assert!(count <= length);
        let slots = self.slots.get();
        // SAFETY: the slots to the top hold blocks; those that are given are overwritten or behind the top afterwards.
        unsafe {
            let oldest = core::slice::from_raw_parts_mut(slots, count);
            give(FreeBlocks::new(self.class, oldest));
            let rest = length - count;
            slots.copy_from(slots.add(count), rest);
            self.front.set_top(self.class, slots.add(rest));
        }
    }

    /// Gives the magazine `capacity` slots, of which the first hold what they held: no more. False where there
    /// is no memory, and then nothing has changed.
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
            // before the first slot is null; both arrays hold that many slots. From here on the fast path uses the new one.
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
        true
    }

    /// Keeps no more blocks until it is refilled. The magazine holds none.
    pub fn rest(self) {
        debug_assert!(self.capacity() != 0 && self.length() == 0);
        // The FULL stands behind the slots in use. Where the first is, the top is too.
        self.put(self.capacity(), null_mut());
        self.put(0, FULL);
        self.resting.set(self.capacity.replace(0));
    }

    /// Uses the slots again that it had when it was told to rest; false where it does not. The magazine holds no block.
    pub fn wake(self) -> bool {
        if self.resting() == 0 {
            return false;
        }
        self.put(0, null_mut());
        self.put(self.resting(), FULL);
        self.capacity.set(self.resting.replace(0));
        true
    }

    /// Gives the slots back. The magazine is empty.
    pub fn discard(self, own: &RefCell<ThreadMetadata>) {
        debug_assert!(self.length() == 0);
        // SAFETY: there is no slot to take a block from or to put one into; the fast path uses the array no more.
        unsafe {
            self.front.set_top(self.class, no_slots());
            self.free_array(own);
        }
        self.magazine.forget();
    }

    /// Writes a slot, or the word behind the last one.
    fn put(self, slot: usize, word: *mut u8) {
        debug_assert!(slot + FRAME <= 1 << self.order.get());
        // SAFETY: the array has room for the slots and one word behind them.
        unsafe { *self.slots.get().add(slot) = word };
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
