//! Depots: free blocks that a thread's magazines have no room for, and that are likely to be wanted
//! again while they are still in the cache.
//!
//! By class a stack of chunks of pointers: what was freed last is handed out first, and what has
//! lain longest goes back to its slab first. Moving blocks between a magazine and a depot looks at
//! neither blocks nor slabs. A thread's depot has a lock of its own, so that others can empty it:
//! before memory grows, when its blocks have lain idle, and for `malloc_trim`.
//!
//! Depots after Bonwick and Adams, "Magazines and Vmem", USENIX 2001; theirs are shared by all
//! threads.

use core::cell::{Cell, UnsafeCell};
use core::ops::Deref;
use core::ptr::NonNull;

use heapdrome_pages::{Lock, Pages};

use crate::size_class::{FIRST_SHARED, SizeClass, UNIT};
use crate::slabs::free_blocks::FreeBlocks;
use crate::units::metadata::Metadata;

/// Bytes of a chunk.
pub const CHUNK_BYTES: usize = 2048;
/// Bytes that a thread's depot may keep however little memory is live, and its magazines too: those
/// of the smallest slab.
pub(super) const LEAST_KEPT: usize = UNIT;
/// Blocks in a chunk: what is left of it beside the links and the count.
pub const CHUNK: usize = CHUNK_BYTES / size_of::<*mut u8>() - 3;

/// Some free blocks of one class. A chunk in a stack is never empty. Zeros are a chunk without
/// blocks.
#[derive(Debug)]
#[repr(C)]
struct Chunk {
    /// The one that was begun after this.
    newer: Cell<Option<ChunkRef>>,
    /// The one before; out of the depot, the next in a list.
    older: Cell<Option<ChunkRef>>,
    count: Cell<u32>,
    class: Cell<SizeClass>,
    blocks: UnsafeCell<[*mut u8; CHUNK]>,
}

const _: () = assert!(size_of::<Chunk>() == CHUNK_BYTES);

impl Chunk {
    /// Number of blocks.
    fn count(&self) -> usize {
        self.count.get() as usize
    }

    /// Uses the slots, the first of which hold the blocks.
    fn with_slots<R>(&self, action: impl FnOnce(&mut [*mut u8; CHUNK]) -> R) -> R {
        // SAFETY: the chunk belongs to the caller's depot, whose lock is held, or to the caller's
        // list. Actions copy pointers, or give blocks of a chunk that is in no depot: none comes
        // here again for the same chunk.
        action(unsafe { &mut *self.blocks.get() })
    }
}

/// Handle of a chunk, which is a depot's or a list's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
struct ChunkRef(NonNull<Chunk>);

impl Deref for ChunkRef {
    type Target = Chunk;

    fn deref(&self) -> &Chunk {
        // SAFETY: a chunk is freed only when its list is emptied, which lets go of the handle
        // before.
        unsafe { self.0.as_ref() }
    }
}

/// Chunks that are out of their depot, and whoever's who has this.
#[derive(Debug)]
pub struct Chunks(Option<ChunkRef>);

impl Chunks {
    /// No chunks.
    pub const NONE: Self = Self(None);

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    fn add(&mut self, chunk: ChunkRef) {
        chunk.older.set(self.0);
        self.0 = Some(chunk);
    }

    /// Takes the blocks of each chunk out by `give`, and gives the chunks back.
    pub fn empty(mut self, metadata: &Lock<Metadata>, mut give: impl FnMut(FreeBlocks<'_>)) {
        while let Some(chunk) = self.0 {
            self.0 = chunk.older.get();
            let (class, count) = (chunk.class.get(), chunk.count());
            if count != 0 {
                chunk.with_slots(|slots| {
                    let blocks = &mut slots[..count];
                    // SAFETY: the first slots hold free blocks of the class, and the chunk goes.
                    give(unsafe { FreeBlocks::new(class, blocks) });
                });
            }
            // SAFETY: the chunk was allocated with this size, and is in no list any more.
            unsafe { metadata.lock().free(chunk.0.cast(), CHUNK_BYTES) };
        }
    }
}

/// The chunks of one class.
#[derive(Clone, Copy, Debug)]
struct Stack {
    newest: Option<ChunkRef>,
    oldest: Option<ChunkRef>,
    /// How many chunks there are.
    chunks: u32,
    /// The fewest there were since the stack was last looked at.
    low: u32,
}

/// Free blocks of small classes. Its lock guards it.
#[derive(Debug)]
pub struct Depot {
    stacks: [Stack; FIRST_SHARED],
    /// Chunks in all stacks.
    chunks: usize,
    /// Bytes of the blocks in all stacks.
    bytes: usize,
    /// Chunks without blocks: as many as there were with blocks at most, until the depot is next
    /// looked at.
    spare: Option<ChunkRef>,
}

// SAFETY: chunks and what they point to may be used by any thread that holds the depot's lock.
unsafe impl Send for Depot {}

impl Depot {
    /// A depot without blocks.
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

    /// Bytes of all blocks.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes of the chunks that hold them.
    #[must_use]
    pub const fn chunk_bytes(&self) -> usize {
        self.chunks * CHUNK_BYTES
    }

    /// How many blocks of a class there are: none of one that is not small.
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

    /// Puts blocks onto the stack of their class, the last of them topmost. Returns how many, from
    /// the first on; fewer than there are only where there is no memory for a chunk.
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

    /// Takes blocks from the top of the stack into the first slots, of which there is one; they
    /// stay in their order. Returns how many: none only where none is there.
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

    /// Takes everything out.
    pub fn take_all(&mut self) -> Chunks {
        let mut taken = Chunks::NONE;
        for number in 1..FIRST_SHARED {
            while self.move_oldest(SizeClass::from_number(number as u8), &mut taken) {}
        }
        self.move_spare(&mut taken);
        taken
    }

    /// Takes out what has lain untouched since the last call of this.
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

    /// A spare chunk holds no blocks, and goes the same way as one that does.
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

    /// The chunk that is to take the next block of a class.
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

    /// Asserts in debug builds what [`check`](Self::check) does.
    fn checked(&self) {
        if cfg!(debug_assertions) {
            self.check();
        }
    }

    /// Asserts that the stacks are linked both ways, and that the counts fit them.
    ///
    /// # Panics
    ///
    /// Where this does not hold.
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
