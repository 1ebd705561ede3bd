//! Memory for the allocator's own structures: bitmaps, magazines, thread heaps.
//!
//! Block sizes are powers of two. New blocks are cut from chunks, which are never given back. Freed
//! blocks are reused for the same size.

use core::ptr::{NonNull, null_mut};

use heapdrome_pages::{Access, Lock, Pages};

const SMALLEST_SHIFT: u32 = 6;
const SIZES: usize = 12;
/// Size of the largest block.
pub const LARGEST: usize = 1 << (SMALLEST_SHIFT + SIZES as u32 - 1);
const CHUNK: usize = 256 << 10;

/// Alignment of chunks, and minimum number of bytes that a thread allocates for its own structures.
const PAGE: usize = 4096;

/// Free block, which holds the link to the next free block of its size.
struct Free {
    next: *mut Free,
}

/// Set of free blocks whose sizes are powers of two: a list for each size, and the rest of the
/// current chunk.
#[derive(Debug)]
struct Pieces {
    free: [*mut Free; SIZES],
    next: *mut u8,
    left: usize,
}

impl Pieces {
    const fn new() -> Self {
        Self {
            free: [null_mut(); SIZES],
            next: null_mut(),
            left: 0,
        }
    }

    /// Returns a zeroed block of the size with this index. It is aligned to its size, but at most
    /// to a page. `more` returns a new chunk and its size, given the minimum size. Chunks are
    /// zeroed and begin at a page.
    fn allocate(
        &mut self,
        index: usize,
        more: impl FnOnce(usize) -> Option<(NonNull<u8>, usize)>,
    ) -> Option<NonNull<u8>> {
        let size = 1 << (SMALLEST_SHIFT + index as u32);
        let first = self.free[index];
        if first.is_null() {
            return self.cut(size, more);
        }
        // SAFETY: a block in this list is free, holds the link to the next block, and has this
        // size.
        unsafe {
            self.free[index] = (*first).next;
            first.cast::<u8>().write_bytes(0, size);
        }
        NonNull::new(first.cast())
    }

    /// Adds a free block to the list of its size.
    ///
    /// # Safety
    ///
    /// The block has the size with this index and the alignment that [`allocate`](Self::allocate)
    /// gives, and is no longer used.
    unsafe fn free(&mut self, block: *mut u8, index: usize) {
        let block: *mut Free = block.cast();
        // SAFETY: by this function's contract, the block is no longer used. It is aligned and large
        // enough for a link.
        unsafe { (*block).next = self.free[index] };
        self.free[index] = block;
    }

    fn cut(
        &mut self,
        size: usize,
        more: impl FnOnce(usize) -> Option<(NonNull<u8>, usize)>,
    ) -> Option<NonNull<u8>> {
        let mut skip = self.next.addr().wrapping_neg() & (size.min(PAGE) - 1);
        if self.left < skip + size {
            let (chunk, bytes) = more(size)?;
            if bytes - size <= self.left {
                // The current chunk has at least as many bytes left as the new one would have, so
                // keep it.
                return Some(chunk);
            }
            skip = 0;
            (self.next, self.left) = (chunk.as_ptr(), bytes);
        }
        self.keep_gap(skip);
        let block = self.next;
        self.next = block.wrapping_add(size);
        self.left -= size;
        NonNull::new(block)
    }

    /// Turns the next `bytes` bytes, the gap before a block of larger alignment, into free blocks.
    fn keep_gap(&mut self, mut bytes: usize) {
        while bytes != 0 {
            let shift = self.next.addr().trailing_zeros();
            // SAFETY: the gap ends at a multiple of a power of two that is larger than the gap. So
            // the largest aligned block that begins here lies within the gap, has one of the sizes,
            // and is unused.
            unsafe {
                self.free(self.next, (shift - SMALLEST_SHIFT) as usize);
                self.next = self.next.add(1 << shift);
            }
            self.left -= 1 << shift;
            bytes -= 1 << shift;
        }
    }
}

/// Free memory for structures; a lock guards it.
#[derive(Debug)]
pub struct Metadata {
    pieces: Pieces,
    /// Bytes in use, including free bytes in threads' own pages.
    pub used: usize,
}

// SAFETY: any thread may use the memory while it holds the lock.
unsafe impl Send for Metadata {}

impl Metadata {
    /// Creates an empty set of free blocks.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            pieces: Pieces::new(),
            used: 0,
        }
    }

    /// Returns a zeroed block of at least `bytes` bytes; `None` above [`LARGEST`], or if out of
    /// memory. Its alignment is its size rounded up to a power of two, but at most a page.
    pub fn allocate(&mut self, pages: &impl Pages, bytes: usize) -> Option<NonNull<u8>> {
        let index = index_of(bytes)?;
        let block = self.pieces.allocate(index, |size| {
            let small = if size > CHUNK / 4 { size } else { CHUNK / 4 };
            [CHUNK, small]
                .into_iter()
                .find_map(|bytes| Some((pages.reserve(bytes, PAGE, Access::ReadWrite)?, bytes)))
        })?;
        self.used += 1 << (SMALLEST_SHIFT + index as u32);
        Some(block)
    }

    /// Frees a block.
    ///
    /// # Safety
    ///
    /// `block` came from [`allocate`](Self::allocate) with the same `bytes`, and is no longer used.
    pub unsafe fn free(&mut self, block: NonNull<u8>, bytes: usize) {
        let Some(index) = index_of(bytes) else { return };
        // SAFETY: by this function's contract, the block has the size of `index` and is no longer
        // used.
        unsafe { self.pieces.free(block.as_ptr(), index) };
        self.used -= 1 << (SMALLEST_SHIFT + index as u32);
    }

    /// Makes these bytes the current chunk. The rest of the former chunk stays unused.
    ///
    /// # Safety
    ///
    /// The bytes read as zero, begin at a page, and belong to this structure from here on.
    pub unsafe fn add(&mut self, chunk: NonNull<u8>, bytes: usize) {
        (self.pieces.next, self.pieces.left) = (chunk.as_ptr(), bytes);
    }
}

impl Default for Metadata {
    fn default() -> Self {
        Self::new()
    }
}

/// Free memory for the structures of one thread, in pages that no other thread uses. A processor
/// prefetches neighbouring lines within a page. In a shared page, these could be another thread's
/// lines, which that thread's processor must then fetch back.
#[derive(Debug)]
pub struct ThreadMetadata(Pieces);

impl ThreadMetadata {
    /// Creates an empty set of free blocks.
    #[must_use]
    pub const fn new() -> Self {
        Self(Pieces::new())
    }

    /// Allocates a block from this thread's pages, which [`Metadata::allocate`] supplies.
    pub fn allocate(
        &mut self,
        metadata: &Lock<Metadata>,
        pages: &impl Pages,
        bytes: usize,
    ) -> Option<NonNull<u8>> {
        self.0.allocate(index_of(bytes)?, |size| {
            let chunk = size.max(PAGE);
            Some((metadata.lock().allocate(pages, chunk)?, chunk))
        })
    }

    /// Frees a block for later use by the thread.
    ///
    /// # Safety
    ///
    /// `block` came from [`allocate`](Self::allocate) with the same `bytes`, and is no longer used.
    pub unsafe fn free(&mut self, block: NonNull<u8>, bytes: usize) {
        let Some(index) = index_of(bytes) else { return };
        // SAFETY: by this function's contract, the block has the size of `index` and is no longer
        // used.
        unsafe { self.0.free(block.as_ptr(), index) };
    }
}

impl Default for ThreadMetadata {
    fn default() -> Self {
        Self::new()
    }
}

fn index_of(bytes: usize) -> Option<usize> {
    let shift = bytes.next_power_of_two().ilog2().max(SMALLEST_SHIFT);
    let index = (shift - SMALLEST_SHIFT) as usize;
    (index < SIZES).then_some(index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapdrome_pages::Simulated;

    #[test]
    fn blocks_are_zero_aligned_and_come_back() {
        let pages = Simulated::new(16 << 20);
        let mut memory = Metadata::new();
        for bytes in [1, 64, 65, 512, 4096, 8192, LARGEST] {
            let block = memory.allocate(&pages, bytes).expect("memory is there");
            let whole = bytes.next_power_of_two().max(64);
            assert_eq!(block.as_ptr().align_offset(whole.min(4096)), 0);
            let mut looked_at = (0..whole).step_by(if cfg!(miri) { 509 } else { 1 });
            // SAFETY: the block has `whole` bytes, and belongs to the test until it is freed.
            unsafe {
                assert!(
                    looked_at
                        .clone()
                        .all(|index| *block.as_ptr().add(index) == 0)
                );
                block.as_ptr().write_bytes(7, whole);
                memory.free(block, bytes);
            }
            assert_eq!(
                memory.allocate(&pages, bytes),
                Some(block),
                "the freed one comes first"
            );
            // SAFETY: the block has `whole` bytes and belongs to the test.
            assert!(unsafe { looked_at.all(|index| *block.as_ptr().add(index) == 0) });
        }
        assert_eq!(memory.allocate(&pages, LARGEST + 1), None);
    }

    #[test]
    fn threads_have_pages_of_their_own() {
        let pages = Simulated::new(16 << 20);
        let memory = Lock::new(Metadata::new());
        let mut threads = [ThreadMetadata::new(), ThreadMetadata::new()];
        let mut of_each = [[0; 5]; 2];
        for step in 0..5 {
            for (thread, pages_of) in threads.iter_mut().zip(&mut of_each) {
                let block = thread
                    .allocate(&memory, &pages, 1024)
                    .expect("memory is there");
                pages_of[step] = block.addr().get() / PAGE;
            }
        }
        let [one, other] = of_each;
        assert!(one.iter().all(|page| !other.contains(page)));
        assert_eq!(memory.lock().used, 4 * PAGE, "four blocks in a page");
        let block = threads[0]
            .allocate(&memory, &pages, 64)
            .expect("memory is there");
        // SAFETY: the block was allocated with this size, and is not used again.
        unsafe { threads[0].free(block, 64) };
        assert_eq!(threads[0].allocate(&memory, &pages, 64), Some(block));
        // SAFETY: the block was allocated with this size, and is not used again.
        unsafe { threads[0].free(block, 64) };
        let large = threads[0]
            .allocate(&memory, &pages, 2 * PAGE)
            .expect("memory is there");
        assert!(large.addr().get().is_multiple_of(PAGE));
        let used = memory.lock().used;
        for size in [64, PAGE, 128, PAGE, 512] {
            assert!(threads[0].allocate(&memory, &pages, size).is_some());
        }
        assert_eq!(
            memory.lock().used,
            used + 2 * PAGE,
            "what was left of a page served"
        );
    }

    #[test]
    fn what_lies_before_something_aligned_serves_others() {
        let pages = Simulated::new(16 << 20);
        let mut memory = Metadata::new();
        let first = memory
            .allocate(&pages, 64)
            .expect("memory is there")
            .addr()
            .get();
        let page = memory
            .allocate(&pages, PAGE)
            .expect("memory is there")
            .addr()
            .get();
        assert_eq!(page, first + PAGE);
        for size in [64, 128, 256, 512, 1024, 2048] {
            let block = memory.allocate(&pages, size).expect("memory is there");
            assert!((first + 64..page).contains(&block.addr().get()), "{size}");
        }
    }

    #[test]
    fn without_memory_there_is_none_and_nothing_counted() {
        let pages = Simulated::new(4096);
        let mut memory = Metadata::new();
        assert_eq!(memory.allocate(&pages, 64), None);
        assert_eq!(memory.used, 0);
    }
}
