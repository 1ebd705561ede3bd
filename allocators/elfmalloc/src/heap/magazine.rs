//! Magazines: how many blocks a thread keeps at hand.

pub mod slots;

use core::cell::Cell;
use core::ptr::null_mut;

use crate::heap::depot::CHUNK;
use crate::size_class::SizeClass;

/// Slots of the largest magazine. When it is full, half of it goes to the depot: a chunk.
const MOST: usize = 2 * CHUNK;
/// A magazine grows after so many slow paths.
const GROWS_AFTER: u8 = 4;

/// Bytes of blocks that suffice for a thread that only allocates, or only frees: when it has
/// nothing more to do they stay with it.
const ENOUGH_ONE_WAY: usize = 16 << 10;

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
    /// Number of slots to be used again after the next refill; zero where the magazine does not
    /// rest.
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

    /// Notes a slow path. True if the magazine should grow: what was just filled has to be emptied,
    /// or the other way round. A thread that only allocates, or only frees, gains little by a
    /// larger one, and would just keep more. `class` is that of the blocks.
    pub fn note(&self, event: Event, class: SizeClass) -> bool {
        self.since.set(self.since.get().max(match event {
            Event::Refill => Since::Refilled,
            Event::Flush => Since::Flushed,
        }));
        if self.last.get() != event {
            self.events.set(self.events.get() + 2);
        } else if Self::next_capacity(self.capacity()) <= ENOUGH_ONE_WAY / class.size() {
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

    /// Looks at the magazine: whether it has slots that no slow path needed since the last time, or
    /// none that a refill would have woken it for.
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
    /// blocks may hold up to four times as much: a batch must be worth the way to the slabs.
    #[must_use]
    pub fn largest(class: SizeClass, limit: usize) -> usize {
        let bytes = (class.size() * 256).clamp(limit, limit.saturating_mul(4));
        (bytes / class.size()).clamp(1, MOST)
    }
}

impl Default for Magazine {
    fn default() -> Self {
        Self::new()
    }
}
