//! Depots: free blocks that a thread's magazines have no room for, and that are likely to be wanted
//! again while they are still in the cache.
//!
//! By class a stack of chunks of pointers: what was freed last is handed out first, and what has lain
//! longest goes back to its slab first. Moving blocks between a magazine and a depot looks at neither
//! blocks nor slabs. A thread's depot has a lock of its own, so that others can empty it: before memory
//! grows, when its blocks have lain idle, and for `malloc_trim`.
//!
//! Depots after Bonwick and Adams, "Magazines and Vmem", USENIX 2001; theirs are shared by all threads.

use core::ptr::{NonNull, null_mut};

use heapdrome_pages::{Lock, Pages};

use crate::size_class::{FIRST_SHARED, SizeClass};
use crate::slabs::free_blocks::FreeBlocks;
use crate::units::metadata::Metadata;

/// Bytes of a chunk.
pub const CHUNK_BYTES: usize = 2048;
/// Blocks in a chunk: what is left of it beside the links and the count.
pub const CHUNK: usize = CHUNK_BYTES / size_of::<*mut u8>() - 3;

/// Some free blocks of one class. A chunk in a stack is never empty.
#[derive(Debug)]
#[repr(C)]
pub struct Chunk {
    /// The one that was begun after this.
    newer: *mut Chunk,
    /// The one before; out of the depot, the next in a list.
    older: *mut Chunk,
    count: u32,
    class: SizeClass,
    blocks: [*mut u8; CHUNK],
}

const _: () = assert!(size_of::<Chunk>() == CHUNK_BYTES);

/// Chunks that are out of their depot, and whoever's who has this.
#[derive(Debug)]
pub struct Chunks(*mut Chunk);

impl Chunks {
    /// No chunks.
    pub const NONE: Self = Self(null_mut());

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_null()
    }

    fn add(&mut self, chunk: *mut Chunk) {
        // SAFETY: the chunk is the caller's.
        unsafe { (*chunk).older = self.0 };
        self.0 = chunk;
    }

    /// Takes the blocks of each chunk out by `give`, and gives the chunks back.
    pub fn empty(mut self, metadata: &Lock<Metadata>, mut give: impl FnMut(FreeBlocks<'_>)) {
        while let Some(chunk) = NonNull::new(self.0) {
            let place = chunk.as_ptr();
            // SAFETY: the chunk is this list's, and its first slots hold blocks; it was allocated with
            // this size.
            unsafe {
                self.0 = (*place).older;
                let blocks: *mut *mut u8 = (&raw mut (*place).blocks).cast();
                let count = (*place).count as usize;
                if count != 0 {
                    let blocks = core::slice::from_raw_parts_mut(blocks, count);
                    give(FreeBlocks::new((*place).class, blocks));
                }
                metadata.lock().free(chunk.cast(), CHUNK_BYTES);
            }
        }
    }
}

/// The chunks of one class.
#[derive(Clone, Copy, Debug)]
struct Stack {
    newest: *mut Chunk,
    oldest: *mut Chunk,
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
    spare: *mut Chunk,
}

// SAFETY: chunks and what they point to may be used by any thread that holds the depot's lock.
unsafe impl Send for Depot {}

impl Depot {
    /// A depot without blocks.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            stacks: [Stack {
                newest: null_mut(),
                oldest: null_mut(),
                chunks: 0,
                low: 0,
            }; FIRST_SHARED],
            chunks: 0,
            bytes: 0,
            spare: null_mut(),
        }
    }

    /// Bytes of all blocks.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Chunks of all classes.
    #[must_use]
    pub const fn chunks(&self) -> usize {
        self.chunks
    }

    /// How many blocks of a class can be put there without another chunk.
    #[must_use]
    pub fn room(&self, class: SizeClass) -> usize {
        let newest = self.stacks[class.number()].newest;
        if newest.is_null() {
            return 0;
        }
        // SAFETY: chunks in a stack are the depot's.
        CHUNK - unsafe { (*newest).count } as usize
    }

    /// How many blocks of a class there are: none of one that is not small.
    #[must_use]
    pub fn count(&self, class: SizeClass) -> usize {
        let mut count = 0;
        let stack = self.stacks.get(class.number());
        let mut chunk = stack.map_or(null_mut(), |stack| stack.newest);
        while !chunk.is_null() {
            // SAFETY: chunks in a stack are the depot's.
            unsafe {
                count += (*chunk).count as usize;
                chunk = (*chunk).older;
            }
        }
        count
    }

    /// Puts blocks onto the stack of their class, the last of them topmost. Returns how many, from the
    /// first on; fewer than there are only where there is no memory for a chunk.
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
            // SAFETY: an open chunk is the depot's and has room for `more` blocks.
            unsafe {
                let count = (*chunk).count as usize;
                let more = rest.len().min(CHUNK - count);
                let slots: *mut *mut u8 = (&raw mut (*chunk).blocks).cast();
                slots
                    .add(count)
                    .copy_from_nonoverlapping(rest.as_ptr(), more);
                (*chunk).count = (count + more) as u32;
                rest = &rest[more..];
            }
        }
        let done = blocks.len() - rest.len();
        self.bytes += done * class.size();
        done
    }

    /// Takes blocks from the top of the stack into the first slots, of which there is one; they stay in their order.
    /// Returns how many: none only where none is there.
    pub fn pop(&mut self, class: SizeClass, slots: &mut [*mut u8]) -> usize {
        let chunk = self.stacks[class.number()].newest;
        if chunk.is_null() {
            return 0;
        }
        // SAFETY: the chunk is the depot's and holds `count` blocks, at least one.
        let taken = unsafe {
            let taken = slots.len().min((*chunk).count as usize);
            (*chunk).count -= taken as u32;
            let blocks: *mut *mut u8 = (&raw mut (*chunk).blocks).cast();
            let top = blocks.add((*chunk).count as usize);
            slots.as_mut_ptr().copy_from_nonoverlapping(top, taken);
            taken
        };
        self.bytes -= taken * class.size();
        // SAFETY: as above.
        if unsafe { (*chunk).count } == 0 {
            self.unlink(class, chunk);
            // SAFETY: the chunk is in no stack any more.
            unsafe { (*chunk).older = self.spare };
            self.spare = chunk;
        }
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
        while !self.spare.is_null() {
            let chunk = self.spare;
            // SAFETY: spare chunks are the depot's.
            self.spare = unsafe { (*chunk).older };
            to.add(chunk);
        }
    }

    fn move_oldest(&mut self, class: SizeClass, to: &mut Chunks) -> bool {
        let chunk = self.stacks[class.number()].oldest;
        if chunk.is_null() {
            return false;
        }
        self.unlink(class, chunk);
        // SAFETY: the chunk was the depot's.
        self.bytes -= unsafe { (*chunk).count } as usize * class.size();
        to.add(chunk);
        true
    }

    /// The chunk that is to take the next block of a class.
    fn open(
        &mut self,
        class: SizeClass,
        metadata: &Lock<Metadata>,
        pages: &impl Pages,
    ) -> Option<*mut Chunk> {
        let newest = self.stacks[class.number()].newest;
        // SAFETY: chunks in a stack are the depot's.
        if !newest.is_null() && (unsafe { (*newest).count } as usize) < CHUNK {
            return Some(newest);
        }
        let chunk = self.spare;
        let chunk = if chunk.is_null() {
            let memory = metadata.lock().allocate(pages, CHUNK_BYTES)?;
            memory.cast().as_ptr()
        } else {
            // SAFETY: spare chunks are the depot's.
            self.spare = unsafe { (*chunk).older };
            chunk
        };
        let stack = &mut self.stacks[class.number()];
        // SAFETY: the chunk is the depot's; so is the newest, if there is one.
        unsafe {
            (*chunk).count = 0;
            (*chunk).class = class;
            (*chunk).newer = null_mut();
            (*chunk).older = newest;
            if newest.is_null() {
                stack.oldest = chunk;
            } else {
                (*newest).newer = chunk;
            }
        }
        stack.newest = chunk;
        stack.chunks += 1;
        self.chunks += 1;
        Some(chunk)
    }

    /// Asserts that the counts fit the stacks.
    ///
    /// # Panics
    ///
    /// Where they do not.
    pub fn check(&self) {
        let (mut chunks, mut bytes) = (0, 0);
        for number in 1..FIRST_SHARED {
            let class = SizeClass::from_number(number as u8);
            let stack = &self.stacks[number];
            assert!(stack.low <= stack.chunks, "more idle chunks than there are");
            assert_eq!(stack.newest.is_null(), stack.chunks == 0);
            chunks += stack.chunks as usize;
            bytes += self.count(class) * class.size();
        }
        assert_eq!(chunks, self.chunks, "the count of chunks");
        assert_eq!(bytes, self.bytes, "the bytes of blocks");
    }

    fn unlink(&mut self, class: SizeClass, chunk: *mut Chunk) {
        let stack = &mut self.stacks[class.number()];
        // SAFETY: the chunk and its neighbours are the depot's.
        unsafe {
            let (newer, older) = ((*chunk).newer, (*chunk).older);
            if newer.is_null() {
                stack.newest = older;
            } else {
                (*newer).older = older;
            }
            if older.is_null() {
                stack.oldest = newer;
            } else {
                (*older).newer = newer;
            }
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
