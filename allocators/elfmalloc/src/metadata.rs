//! Memory for the allocator's own structures: bitmaps, magazines, thread heaps.
//!
//! Blocks of powers of two, from chunks that are never given back; freed ones are kept by size.

use core::ptr::{NonNull, null_mut};

use heapdrome_pages::{Access, Pages};

const SMALLEST_SHIFT: u32 = 6;
const SIZES: usize = 12;
/// The largest block.
pub const LARGEST: usize = 1 << (SMALLEST_SHIFT + SIZES as u32 - 1);
const CHUNK: usize = 256 << 10;

/// A free block.
struct Free {
    next: *mut Free,
}

/// Free memory for structures; a lock guards it.
#[derive(Debug)]
pub struct Metadata {
    free: [*mut Free; SIZES],
    next: *mut u8,
    left: usize,
    /// Bytes in use.
    pub used: usize,
}

// SAFETY: any thread may use the memory under the lock.
unsafe impl Send for Metadata {}

impl Metadata {
    /// No memory.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            free: [null_mut(); SIZES],
            next: null_mut(),
            left: 0,
            used: 0,
        }
    }

    /// A zero block of at least `bytes`, at most [`LARGEST`], aligned to its size rounded up to a
    /// power of two (to at most a page).
    pub fn allocate(&mut self, pages: &impl Pages, bytes: usize) -> Option<NonNull<u8>> {
        let index = index_of(bytes)?;
        let size = 1 << (SMALLEST_SHIFT + index as u32);
        let first = self.free[index];
        self.used += size;
        if first.is_null() {
            return self.cut(pages, size).or_else(|| {
                self.used -= size;
                None
            });
        }
        // SAFETY: a free block holds the link to the next one, and is this size.
        unsafe {
            self.free[index] = (*first).next;
            first.cast::<u8>().write_bytes(0, size);
        }
        NonNull::new(first.cast())
    }

    /// Takes a block back.
    ///
    /// # Safety
    ///
    /// `block` came from [`allocate`](Self::allocate) with the same `bytes`, and nobody uses it.
    pub unsafe fn free(&mut self, block: NonNull<u8>, bytes: usize) {
        let Some(index) = index_of(bytes) else { return };
        let block: *mut Free = block.as_ptr().cast();
        // SAFETY: the block is the caller's to give, aligned, and large enough for a link.
        unsafe { (*block).next = self.free[index] };
        self.free[index] = block;
        self.used -= 1 << (SMALLEST_SHIFT + index as u32);
    }

    /// Serves from these bytes next.
    ///
    /// # Safety
    ///
    /// They read as zero, begin at a page, and are nobody else's from here on.
    pub unsafe fn add(&mut self, chunk: NonNull<u8>, bytes: usize) {
        self.next = chunk.as_ptr();
        self.left = bytes;
    }

    fn cut(&mut self, pages: &impl Pages, size: usize) -> Option<NonNull<u8>> {
        let alignment = size.min(4096);
        let skip = self.next.addr().wrapping_neg() & (alignment - 1);
        if self.left < skip + size {
            let small = if size > CHUNK / 4 { size } else { CHUNK / 4 };
            let (chunk, bytes) = [CHUNK, small]
                .into_iter()
                .find_map(|bytes| Some((pages.reserve(bytes, 4096, Access::ReadWrite)?, bytes)))?;
            // SAFETY: the chunk was just reserved.
            unsafe { self.add(chunk, bytes) };
            return self.cut(pages, size);
        }
        // SAFETY: that many bytes are left behind `next`.
        let block = unsafe { self.next.add(skip) };
        // SAFETY: as above.
        self.next = unsafe { block.add(size) };
        self.left -= skip + size;
        NonNull::new(block)
    }
}

impl Default for Metadata {
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
            // SAFETY: the block has that many bytes and is the test's own.
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
            // SAFETY: as above.
            assert!(unsafe { looked_at.all(|index| *block.as_ptr().add(index) == 0) });
        }
        assert_eq!(memory.allocate(&pages, LARGEST + 1), None);
    }

    #[test]
    fn without_memory_there_is_none_and_nothing_counted() {
        let pages = Simulated::new(4096);
        let mut memory = Metadata::new();
        assert_eq!(memory.allocate(&pages, 64), None);
        assert_eq!(memory.used, 0);
    }
}
