//! `realloc`, and the usable size of a block.

use core::ptr::NonNull;
use core::sync::atomic::Ordering::Relaxed;

use crate::chunk::{self, Chunk, GRANULE};
use crate::heap::{Heap, current};
use crate::large;

/// Returns the usable size of the block in bytes.
///
/// # Safety
///
/// `block` is a live block.
pub unsafe fn usable_size(block: NonNull<u8>) -> usize {
    let header = large::header_of(block);
    // SAFETY: by this function's contract, the block is live, and every live block lies behind a
    // header.
    let chunk = unsafe { header.as_ref() };
    if large::is_mapped(chunk) {
        // Relaxed: a thread that has the block received it after its header was written.
        return chunk.end.load(Relaxed);
    }
    let start = block.addr().get() - header.addr().get();
    chunk.block_end(start) - start
}

/// Resizes a block to at least `size` bytes in place, if it lies in the calling thread's current
/// chunk. Returns `None`, without any change, if that is impossible.
///
/// # Safety
///
/// `block` is live, and no other thread uses it during the call. The caller does not use it again
/// if the result is another block.
pub unsafe fn resize_own(block: NonNull<u8>, size: usize) -> Option<NonNull<u8>> {
    let own = core::ptr::eq(current().chunk.get(), large::header_of(block).as_ptr());
    if own {
        // SAFETY: this function's contract is that of `resize_in_place`.
        unsafe { resize_in_place(block, size) }
    } else {
        None
    }
}

/// Resizes a block to at least `size` bytes without copying. Only a block with its own mapping may
/// move. Returns `None`, without any change, if that is impossible.
///
/// # Safety
///
/// `block` is live, and no other thread uses it during the call. The caller does not use it again
/// if the result is another block.
pub unsafe fn resize_in_place(block: NonNull<u8>, size: usize) -> Option<NonNull<u8>> {
    let header = large::header_of(block);
    // SAFETY: by this function's contract, the block is live, and every live block lies behind a
    // header.
    let chunk = unsafe { header.as_ref() };
    if large::is_mapped(chunk) {
        // SAFETY: by this function's contract, the block is live, no other thread uses it, and the
        // caller does not use it again if it moves. It has its own mapping. If the resize fails,
        // the block is unchanged.
        return unsafe {
            large::resize(header, block, size)
                .or_else(|| (size <= usable_size(block)).then_some(block))
        };
    }
    let start = block.addr().get();
    // SAFETY: the block is live, by this function's contract.
    let end = start + unsafe { usable_size(block) };
    let heap = current();
    let last = core::ptr::eq(heap.chunk.get(), header.as_ptr()) && heap.cursor.get() == end;
    if last && size <= heap.limit.get() - start {
        // SAFETY: `heap` belongs to the calling thread, `chunk` is its chunk, and `end` is its
        // cursor. The new end is a multiple of `GRANULE`, above the block's start and not above the
        // heap's limit.
        unsafe { heap.move_end(chunk, end, start + size.max(1).next_multiple_of(GRANULE)) };
        return Some(block);
    }
    (size <= end - start).then_some(block)
}

impl Heap {
    /// Moves the end of the last block in the heap's chunk.
    ///
    /// # Safety
    ///
    /// The heap belongs to the calling thread, `chunk` is its chunk, and `end` is its cursor.
    /// `new_end` is a multiple of [`GRANULE`] in the chunk, above the start of the last block.
    unsafe fn move_end(&self, chunk: &Chunk, end: usize, new_end: usize) {
        // SAFETY: `self.marks` is the base of this chunk's marks, and the calling thread allocates
        // in the chunk. Both granules belong to the chunk's last block, before or after its end
        // moves, so they lie behind offset `FIRST`.
        unsafe {
            chunk::unmark(self.marks.get(), end - 1);
            chunk::mark(self.marks.get(), new_end - 1);
        }
        // If the block shrinks, the program may have written to the freed bytes, so they count as
        // touched. Relaxed: while blocks are live, only the chunk's owner, this thread, uses this
        // word.
        let offset = end - core::ptr::from_ref(chunk).addr();
        if offset > chunk.touched.load(Relaxed) {
            chunk.touched.store(offset, Relaxed);
        }
        self.cursor.set(new_end);
    }
}

/// Returns the number of bytes at the start of a new block that may be nonzero, at most `size`.
///
/// # Safety
///
/// The calling thread has just allocated `block` with `size` bytes.
pub unsafe fn possibly_not_zero(block: NonNull<u8>, size: usize) -> usize {
    let header = large::header_of(block);
    // SAFETY: the block was just allocated, by this function's contract, and every live block lies
    // behind a header.
    let chunk = unsafe { header.as_ref() };
    if large::is_mapped(chunk) {
        return 0;
    }
    let start = block.addr().get() - header.addr().get();
    // Relaxed: while the block is live, only this thread changes the word.
    chunk.touched.load(Relaxed).saturating_sub(start).min(size)
}
