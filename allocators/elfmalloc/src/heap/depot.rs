//! Depots: free blocks that do not fit into a thread's magazines. The thread is likely to allocate
//! them again while they are still in the processor's cache.
//!
//! A depot has a stack of chunks of pointers for each class. The most recently freed blocks are
//! handed out first; the oldest go back to their slabs first. Moving blocks between a magazine and
//! a depot reads neither blocks nor slabs. Each thread's depot has its own lock, so that other
//! threads can empty it: before memory grows, when its blocks have been idle, and for
//! `malloc_trim`.
//!
//! The design follows Bonwick and Adams, "Magazines and Vmem", USENIX 2001, whose depots are shared
//! by all threads.

use core::cell::{Cell, UnsafeCell};
use core::ops::Deref;
use core::ptr::NonNull;

use heapdrome_pages::{Lock, Pages};

use crate::size_class::{FIRST_SHARED, SizeClass, UNIT};
use crate::slabs::free_blocks::FreeBlocks;
use crate::units::metadata::Metadata;

/// Bytes of a chunk.
pub const CHUNK_BYTES: usize = 2048;
/// Number of bytes that a thread's depot may hold even if little memory is live: the size of the
/// smallest slab. The thread's magazines may hold the same number of bytes.
pub(super) const LEAST_KEPT: usize = UNIT;
/// Maximum number of blocks in a chunk: its words, minus three for the header.
pub const CHUNK: usize = CHUNK_BYTES / size_of::<*mut u8>() - 3;

/// Free blocks of one class. A chunk in a stack is never empty. All-zero memory is a valid chunk
/// without blocks.
#[derive(Debug)]
#[repr(C)]
struct Chunk {
    /// Next newer chunk in the stack.
    newer: Cell<Option<ChunkRef>>,
    /// Next older chunk in the stack; outside stacks, the next chunk in a list.
    older: Cell<Option<ChunkRef>>,
    count: Cell<u32>,
    class: Cell<SizeClass>,
    blocks: UnsafeCell<[*mut u8; CHUNK]>,
}

const _: () = assert!(size_of::<Chunk>() == CHUNK_BYTES);

impl Chunk {
    fn count(&self) -> usize {
        self.count.get() as usize
    }

    /// Calls `action` with all slots. The first [`count`](Self::count) slots hold the blocks.
    fn with_slots<R>(&self, action: impl FnOnce(&mut [*mut u8; CHUNK]) -> R) -> R {
        // SAFETY: the chunk belongs to the caller's depot, whose lock is held, or to the caller's
        // list. No action reaches the slots of the same chunk by another path: actions copy
        // pointers, or give away the blocks of a chunk that is in no depot.
        action(unsafe { &mut *self.blocks.get() })
    }
}

/// Handle of a chunk, which belongs to a depot or to a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
struct ChunkRef(NonNull<Chunk>);

impl Deref for ChunkRef {
    type Target = Chunk;

    fn deref(&self) -> &Chunk {
        // SAFETY: a chunk is freed only when its list is emptied, and its handle is not followed
        // after that.
        unsafe { self.0.as_ref() }
    }
}

/// List of chunks that were taken out of their depot. The holder of this value owns them.
#[derive(Debug)]
pub struct Chunks(Option<ChunkRef>);

impl Chunks {
    /// List without chunks.
    pub const NONE: Self = Self(None);

    /// Returns whether the list has no chunks.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    fn add(&mut self, chunk: ChunkRef) {
        chunk.older.set(self.0);
        self.0 = Some(chunk);
    }

    /// Passes the blocks of each chunk to `give`, and frees the chunks.
    pub fn empty(mut self, metadata: &Lock<Metadata>, mut give: impl FnMut(FreeBlocks<'_>)) {
        while let Some(chunk) = self.0 {
            self.0 = chunk.older.get();
            let (class, count) = (chunk.class.get(), chunk.count());
            if count != 0 {
                chunk.with_slots(|slots| {
                    let blocks = &mut slots[..count];
                    // SAFETY: the first `count` slots hold free blocks of the class. The chunk is
                    // in no depot and is freed next, so no other list has these blocks, and no
                    // other code uses the slots.
                    give(unsafe { FreeBlocks::new(class, blocks) });
                });
            }
            // SAFETY: the chunk was allocated with this size, and is no longer in any list.
            unsafe { metadata.lock().free(chunk.0.cast(), CHUNK_BYTES) };
        }
    }
}

/// Stack of the chunks of one class.
#[derive(Clone, Copy, Debug)]
struct Stack {
    newest: Option<ChunkRef>,
    oldest: Option<ChunkRef>,
    chunks: u32,
    /// Minimum number of chunks since the last call of [`Depot::take_idle`].
    low: u32,
}

/// Free blocks of small classes; the depot's lock guards them.
#[derive(Debug)]
pub struct Depot {
    stacks: [Stack; FIRST_SHARED],
    /// Number of chunks in all stacks.
    chunks: usize,
    /// Bytes of the blocks in all stacks.
    bytes: usize,
    /// Chunks that have become empty. They are kept for reuse until the next call of
    /// [`take_idle`](Self::take_idle) or [`take_all`](Self::take_all).
    spare: Option<ChunkRef>,
}

// SAFETY: any thread may use the chunks and the blocks in them while it holds the depot's lock.
unsafe impl Send for Depot {}

impl Depot {
    /// Creates a depot without blocks.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            stacks: [Stack {
                newest: None,
                oldest: None,
                chunks: 0,
                low: 0,
            }; FIRST_SHARED],
            chunks: 0,
            bytes: 0,
            spare: None,
        }
    }

    /// Returns the bytes of all blocks.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the bytes of the chunks that hold the blocks.
    #[must_use]
    pub const fn chunk_bytes(&self) -> usize {
        self.chunks * CHUNK_BYTES
    }

    /// Returns the number of blocks of a class; 0 for a class that is not small.
    #[must_use]
    pub fn count(&self, class: SizeClass) -> usize {
        let mut count = 0;
        let stack = self.stacks.get(class.number());
        let mut next = stack.and_then(|stack| stack.newest);
        while let Some(chunk) = next {
            count += chunk.count();
            next = chunk.older.get();
        }
        count
    }

    /// Pushes blocks in order onto the stack of their class. Returns the number of pushed blocks.
    /// This is less than the number of `blocks` only if out of memory for a chunk.
    pub fn push(
        &mut self,
        blocks: &mut FreeBlocks<'_>,
        metadata: &Lock<Metadata>,
        pages: &impl Pages,
    ) -> usize {
        let class = blocks.class();
        let blocks: &[*mut u8] = blocks.as_slice();
        let mut rest = blocks;
        while !rest.is_empty() {
            let Some(chunk) = self.open(class, metadata, pages) else {
                break;
            };
            let count = chunk.count();
            let more = rest.len().min(CHUNK - count);
            chunk.with_slots(|slots| slots[count..count + more].copy_from_slice(&rest[..more]));
            chunk.count.set((count + more) as u32);
            rest = &rest[more..];
        }
        let done = blocks.len() - rest.len();
        self.bytes += done * class.size();
        self.checked();
        done
    }

    /// Pops blocks from the newest chunk of `class` into the first slots, and keeps their order.
    /// `slots` must not be empty. Returns the number of popped blocks: 0 only if the stack is
    /// empty.
    pub fn pop(&mut self, class: SizeClass, slots: &mut [*mut u8]) -> usize {
        let Some(chunk) = self.stacks[class.number()].newest else {
            return 0;
        };
        let taken = slots.len().min(chunk.count());
        let left = chunk.count() - taken;
        chunk.count.set(left as u32);
        chunk.with_slots(|blocks| slots[..taken].copy_from_slice(&blocks[left..left + taken]));
        self.bytes -= taken * class.size();
        if left == 0 {
            self.unlink(class, chunk);
            chunk.older.set(self.spare);
            self.spare = Some(chunk);
        }
        self.checked();
        taken
    }

    /// Takes out all chunks.
    pub fn take_all(&mut self) -> Chunks {
        let mut taken = Chunks::NONE;
        for number in 1..FIRST_SHARED {
            while self.move_oldest(SizeClass::from_number(number as u8), &mut taken) {}
        }
        self.move_spare(&mut taken);
        taken
    }

    /// Takes out the chunks that have been idle since the last call, and the spare chunks.
    pub fn take_idle(&mut self) -> Chunks {
        let mut taken = Chunks::NONE;
        for number in 1..FIRST_SHARED {
            for _ in 0..self.stacks[number].low {
                self.move_oldest(SizeClass::from_number(number as u8), &mut taken);
            }
            self.stacks[number].low = self.stacks[number].chunks;
        }
        self.move_spare(&mut taken);
        taken
    }

    /// Moves the spare chunks, which hold no blocks, to the list `to`.
    fn move_spare(&mut self, to: &mut Chunks) {
        while let Some(chunk) = self.spare {
            self.spare = chunk.older.get();
            to.add(chunk);
        }
    }

    fn move_oldest(&mut self, class: SizeClass, to: &mut Chunks) -> bool {
        let Some(chunk) = self.stacks[class.number()].oldest else {
            return false;
        };
        self.unlink(class, chunk);
        self.bytes -= chunk.count() * class.size();
        to.add(chunk);
        true
    }

    /// Returns the newest chunk of a class if it has room. Otherwise adds an empty chunk to the
    /// stack and returns that; `None` if out of memory.
    fn open(
        &mut self,
        class: SizeClass,
        metadata: &Lock<Metadata>,
        pages: &impl Pages,
    ) -> Option<ChunkRef> {
        let newest = self.stacks[class.number()].newest;
        if let Some(chunk) = newest.filter(|chunk| chunk.count() < CHUNK) {
            return Some(chunk);
        }
        let chunk = match self.spare {
            Some(chunk) => {
                self.spare = chunk.older.get();
                chunk
            }
            None => ChunkRef(metadata.lock().allocate(pages, CHUNK_BYTES)?.cast()),
        };
        chunk.count.set(0);
        chunk.class.set(class);
        chunk.newer.set(None);
        chunk.older.set(newest);
        let stack = &mut self.stacks[class.number()];
        match newest {
            None => stack.oldest = Some(chunk),
            Some(newest) => newest.newer.set(Some(chunk)),
        }
        stack.newest = Some(chunk);
        stack.chunks += 1;
        self.chunks += 1;
        Some(chunk)
    }

    /// Asserts the invariants of [`check`](Self::check) in debug builds.
    fn checked(&self) {
        if cfg!(debug_assertions) {
            self.check();
        }
    }

    /// Asserts that the stacks are linked both ways and have no empty chunk, and that the counts
    /// match them.
    ///
    /// # Panics
    ///
    /// If an invariant does not hold.
    pub fn check(&self) {
        let (mut chunks, mut bytes) = (0, 0);
        for number in 1..FIRST_SHARED {
            let class = SizeClass::from_number(number as u8);
            let stack = &self.stacks[number];
            assert!(stack.low <= stack.chunks, "more idle chunks than there are");
            let (mut count, mut newer, mut next) = (0, None, stack.newest);
            while let Some(chunk) = next {
                assert!((1..=CHUNK).contains(&chunk.count()), "an empty chunk");
                assert_eq!((chunk.newer.get(), chunk.class.get()), (newer, class));
                bytes += chunk.count() * class.size();
                count += 1;
                (newer, next) = (next, chunk.older.get());
            }
            assert_eq!((newer, count), (stack.oldest, stack.chunks));
            chunks += count as usize;
        }
        assert_eq!(chunks, self.chunks, "the count of chunks");
        assert_eq!(bytes, self.bytes, "the bytes of blocks");
    }

    fn unlink(&mut self, class: SizeClass, chunk: ChunkRef) {
        let stack = &mut self.stacks[class.number()];
        let (newer, older) = (chunk.newer.get(), chunk.older.get());
        match newer {
            None => stack.newest = older,
            Some(newer) => newer.older.set(older),
        }
        match older {
            None => stack.oldest = newer,
            Some(older) => older.newer.set(newer),
        }
        stack.chunks -= 1;
        stack.low = stack.low.min(stack.chunks);
        self.chunks -= 1;
    }
}

impl Default for Depot {
    fn default() -> Self {
        Self::new()
    }
}
