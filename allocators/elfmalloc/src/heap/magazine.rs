//! Magazines: a thread's caches of free blocks, one for each class, and the rules by which their
//! capacity changes.

pub mod slots;

use core::cell::Cell;
use core::ptr::null_mut;

use crate::heap::depot::CHUNK;
use crate::size_class::SizeClass;

/// Number of slots of the largest magazine. Half of it, which most flushes move, fills a chunk of
/// the depot.
const MOST: usize = 2 * CHUNK;
/// Number of slow paths after which a magazine grows. A refill after a flush counts twice, as does
/// a flush after a refill. Any other slow path counts once, and only while the magazine is small.
const GROWS_AFTER: u8 = 4;

/// Number of bytes up to which a magazine grows in a thread that only allocates, or only frees.
/// The magazine keeps up to this number of bytes when the thread becomes idle.
const ENOUGH_ONE_WAY: usize = 16 << 10;

/// Reason for a slow path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The magazine was empty.
    Refill,
    /// The magazine had no free slot.
    Flush,
}

/// Slow paths of a magazine since the last call of [`Magazine::look`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Since {
    /// No slow path was taken.
    Nothing,
    /// The magazine was flushed and not refilled.
    Flushed,
    /// The magazine was refilled, so the thread may soon need the blocks that leave it.
    Refilled,
}

/// Part of a magazine that the fast path does not use. Only the owning thread uses it.
#[derive(Debug)]
pub struct Magazine {
    /// First slot; null if the magazine has no array.
    slots: Cell<*mut *mut u8>,
    /// Number of slots before the word [`FULL`](crate::heap::front::FULL). The array may have more.
    capacity: Cell<u16>,
    /// Number of slots to restore at the next refill; zero if the magazine does not rest.
    resting: Cell<u16>,
    /// Binary logarithm of the number of words in the array, if there is one.
    order: Cell<u8>,
    events: Cell<u8>,
    last: Cell<Event>,
    since: Cell<Since>,
}

// Kept small, because a heap has one magazine for each class, and slow paths read them.
const _: () = assert!(size_of::<Magazine>() == 16);

impl Magazine {
    /// Creates a magazine without slots.
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

    /// Forgets the slots and their blocks, without freeing either.
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

    /// Returns the number of slots that may hold blocks.
    #[inline]
    pub fn capacity(&self) -> usize {
        usize::from(self.capacity.get())
    }

    /// Records a slow path for blocks of `class`. Returns whether the magazine should grow: mainly
    /// if refills and flushes alternate. A thread that only allocates, or only frees, gains little
    /// from a larger magazine, and would cache more memory.
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

    /// Returns whether the last slow path was for this event.
    pub fn was(&self, event: Event) -> bool {
        self.last.get() == event
    }

    /// Returns whether the magazine was refilled since the last call of [`look`](Self::look).
    pub fn was_refilled(&self) -> bool {
        self.since.get() == Since::Refilled
    }

    /// Returns whether the magazine has an array and was idle since the last call: it took no slow
    /// path, or it rests and was only flushed. Begins a new period for the next call.
    pub fn look(&self) -> bool {
        let since = self.since.replace(Since::Nothing);
        let unused = since == Since::Nothing || self.resting() != 0 && since == Since::Flushed;
        !self.slots.get().is_null() && unused
    }

    /// Returns the number of slots to restore at the next refill; zero if the magazine does not
    /// rest.
    pub fn resting(&self) -> usize {
        usize::from(self.resting.get())
    }

    /// Returns the number of slots that a magazine of `class` gets first. `limit` is the maximum
    /// number of bytes in a magazine of small blocks.
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

    /// Returns the next larger capacity of a magazine.
    #[must_use]
    pub const fn next_capacity(capacity: usize) -> usize {
        capacity * 2 + 2
    }

    /// Returns the maximum capacity if a magazine of small blocks may hold `limit` bytes. A
    /// magazine of larger blocks may hold up to four times as many bytes, so that a batch is worth
    /// the access to the slabs.
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
