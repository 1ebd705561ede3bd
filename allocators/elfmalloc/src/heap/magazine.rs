//! Magazines: how many blocks a thread keeps at hand, and where.

use core::ptr::{NonNull, null_mut};

use heapdrome_pages::{Lock, Pages};

use crate::heap::depot::CHUNK;
use crate::heap::front::{FULL, Front, no_slots};
use crate::size_class::SizeClass;
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

/// What the fast path does not need to know of a magazine.
#[derive(Clone, Copy, Debug)]
pub struct Magazine {
    /// The first slot; null where there are none yet.
    pub slots: *mut *mut u8,
    /// How many of the slots are used.
    pub capacity: u16,
    /// How many of them are to be used again after the next refill; zero where the magazine does not rest.
    resting: u16,
    /// The array has two to the power of this words, if there is one.
    order: u8,
    events: u8,
    last: Event,
    since: Since,
}

// A heap has one for each class, and slow paths read them.
const _: () = assert!(size_of::<Magazine>() == 16);

impl Magazine {
    /// No slots.
    pub const NONE: Self = Self {
        slots: null_mut(),
        capacity: 0,
        resting: 0,
        order: 0,
        events: 0,
        last: Event::Refill,
        since: Since::Nothing,
    };

    /// Notes a slow path. True if the magazine should grow: what was just filled has to be emptied, or
    /// the other way round. A thread that only allocates, or only frees, gains little by a larger
    /// one, and would just keep more. `class` is that of the blocks.
    pub fn note(&mut self, event: Event, class: SizeClass) -> bool {
        self.since = self.since.max(match event {
            Event::Refill => Since::Refilled,
            Event::Flush => Since::Flushed,
        });
        if self.last != event {
            self.events += 2;
        } else if Self::next_capacity(self.capacity)
            <= ENOUGH_ONE_WAY.min(ENOUGH_BYTES_ONE_WAY / class.size())
        {
            self.events += 1;
        }
        self.last = event;
        if self.events < GROWS_AFTER {
            return false;
        }
        self.events = 0;
        true
    }

    /// Whether the last slow path was for this.
    #[must_use]
    pub fn was(&self, event: Event) -> bool {
        self.last == event
    }

    /// Whether it was refilled since it was last looked at.
    #[must_use]
    pub fn was_refilled(&self) -> bool {
        self.since == Since::Refilled
    }

    /// Looks at the magazine: whether it has slots that no slow path needed since the last time, or none that a
    /// refill would have woken it for.
    pub fn look(&mut self) -> bool {
        let since = core::mem::replace(&mut self.since, Since::Nothing);
        let unused = since == Since::Nothing || self.resting != 0 && since == Since::Flushed;
        !self.slots.is_null() && unused
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
    pub fn next_capacity(capacity: u16) -> usize {
        usize::from(capacity) * 2 + 2
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

    /// How many blocks there are.
    #[must_use]
    pub fn length(&self, front: &Front, class: SizeClass) -> usize {
        if self.slots.is_null() {
            return 0;
        }
        // Slots are words; the top is never before the first.
        (front.top(class).addr() - self.slots.addr()) / size_of::<*mut u8>()
    }

    /// Gives the magazine `capacity` slots, of which the first hold what they held. False where there
    /// is no memory, and then nothing has changed.
    ///
    /// # Safety
    ///
    /// The magazine is that of `class` in `front`, whose thread calls and has `own`, and holds at most `capacity`
    /// blocks.
    pub unsafe fn resize(
        &mut self,
        front: &Front,
        class: SizeClass,
        capacity: usize,
        own: &mut ThreadMetadata,
        metadata: &Lock<Metadata>,
        pages: &impl Pages,
    ) -> bool {
        let length = self.length(front, class);
        debug_assert!(length <= capacity && capacity <= MOST && self.resting == 0);
        if capacity + FRAME > 1 << self.order {
            let words = (capacity + FRAME).next_power_of_two().max(8);
            let bytes = words * size_of::<*mut u8>();
            let Some(array) = own.allocate(metadata, pages, bytes) else {
                return false;
            };
            // SAFETY: the array has a word more before the slots, and is zero, so that the word
            // before the first slot is null.
            let slots = unsafe { array.as_ptr().cast::<*mut u8>().add(1) };
            if length != 0 {
                // SAFETY: both arrays hold that many slots.
                unsafe { slots.copy_from_nonoverlapping(self.slots, length) };
            }
            // SAFETY: the fast path uses the new array from here on.
            unsafe {
                front.set_top(class, slots.add(length));
                self.free_array(own);
            }
            self.slots = slots;
            self.order = words.ilog2() as u8;
        } else if self.capacity != 0 {
            // SAFETY: the FULL stood behind the slots in use.
            unsafe { *self.slots.add(usize::from(self.capacity)) = null_mut() };
        }
        // SAFETY: the array has room for the slots and one word behind them.
        unsafe { *self.slots.add(capacity) = FULL };
        self.capacity = capacity as u16;
        true
    }

    /// Keeps no more blocks until it is refilled.
    ///
    /// # Safety
    ///
    /// The magazine has slots in use, holds no block, and its thread calls.
    pub unsafe fn rest(&mut self) {
        debug_assert!(self.capacity != 0);
        // SAFETY: the FULL stands behind the slots in use. Where the first is, the top is too.
        unsafe {
            *self.slots.add(usize::from(self.capacity)) = null_mut();
            *self.slots = FULL;
        }
        self.resting = self.capacity;
        self.capacity = 0;
    }

    /// How many slots it is to use again; none where it does not rest.
    #[must_use]
    pub fn resting(&self) -> usize {
        usize::from(self.resting)
    }

    /// Uses the slots again that it had when it was told to rest; false where it does not.
    ///
    /// # Safety
    ///
    /// The magazine holds no block, and its thread calls.
    pub unsafe fn wake(&mut self) -> bool {
        if self.resting == 0 {
            return false;
        }
        // SAFETY: the array has room for as many slots as there were, and one word behind them.
        unsafe {
            *self.slots = null_mut();
            *self.slots.add(usize::from(self.resting)) = FULL;
        }
        self.capacity = self.resting;
        self.resting = 0;
        true
    }

    /// Gives the slots back.
    ///
    /// # Safety
    ///
    /// The magazine is empty, and that of `class` in `front`, whose thread calls and has `own`.
    pub unsafe fn discard(&mut self, front: &Front, class: SizeClass, own: &mut ThreadMetadata) {
        // SAFETY: there is no slot to take a block from or to put one into; the fast path uses the array no more.
        unsafe {
            front.set_top(class, no_slots());
            self.free_array(own);
        }
        *self = Self::NONE;
    }

    /// # Safety
    ///
    /// The fast path does not use the array.
    unsafe fn free_array(&mut self, own: &mut ThreadMetadata) {
        if self.slots.is_null() {
            return;
        }
        let bytes = size_of::<*mut u8>() << self.order;
        // SAFETY: the array begins a word before the slots, and was allocated with this size.
        unsafe {
            let array = NonNull::new_unchecked(self.slots.sub(1).cast());
            own.free(array, bytes);
        }
    }
}
