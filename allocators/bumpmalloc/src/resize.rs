//! `realloc`, and how large a block is.

use core::ptr::NonNull;
use core::sync::atomic::Ordering::Relaxed;

use crate::chunk::{self, Chunk, GRANULE};
use crate::heap::{Heap, current};
use crate::large;

/// How many bytes the block has.
///
/// # Safety
///
/// `block` is a live block.
pub unsafe fn usable_size(block: NonNull<u8>) -> usize {
    let header = large::header_of(block);
    // SAFETY: every live block lies behind a header.
    let chunk = unsafe { header.as_ref() };
    if large::is_mapped(chunk) {
        // Relaxed: whoever has the block has seen its header written.
        return chunk.end.load(Relaxed);
    }
    let start = block.addr().get() - header.addr().get();
    chunk.block_end(start) - start
}

/// Makes a block at least `size` bytes large without moving it, if it lies in the chunk that the
/// calling thread allocates in.
///
/// # Safety
///
/// `block` is a live block that no other thread uses meanwhile.
pub unsafe fn resize_own(block: NonNull<u8>, size: usize) -> Option<NonNull<u8>> {
    let own = core::ptr::eq(current().chunk.get(), large::header_of(block).as_ptr());
    if own {
        // SAFETY: the caller's promise.
        unsafe { resize_in_place(block, size) }
    } else {
        None
    }
}

/// Makes a block at least `size` bytes large without moving its contents to another block.
///
/// # Safety
///
/// `block` is a live block that no other thread uses meanwhile.
pub unsafe fn resize_in_place(block: NonNull<u8>, size: usize) -> Option<NonNull<u8>> {
    let header = large::header_of(block);
    // SAFETY: every live block lies behind a header.
    let chunk = unsafe { header.as_ref() };
    if large::is_mapped(chunk) {
        // SAFETY: the caller's promise. A block that becomes small keeps a page or two, or all of
        // it where the system refuses.
        return unsafe {
            large::resize(header, block, size)
                .or_else(|| (size <= usable_size(block)).then_some(block))
        };
    }
    let start = block.addr().get();
    // SAFETY: the caller's promise.
    let end = start + unsafe { usable_size(block) };
    let heap = current();
    let last = core::ptr::eq(heap.chunk.get(), header.as_ptr()) && heap.cursor.get() == end;
    if last && size <= heap.limit.get() - start {
        // SAFETY: the block is the last of the calling thread's chunk.
        unsafe { heap.move_end(chunk, end, start + size.max(1).next_multiple_of(GRANULE)) };
        return Some(block);
    }
    (size <= end - start).then_some(block)
}

impl Heap {
    /// Moves the end of the last block.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's, `chunk` its chunk, `end` its cursor; `new_end` lies in the
    /// chunk, behind the last block's start.
    unsafe fn move_end(&self, chunk: &Chunk, end: usize, new_end: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            chunk::unmark(self.marks.get(), end - 1);
            chunk::mark(self.marks.get(), new_end - 1);
        }
        // What the block gives up has been written to. Relaxed: only the owner uses it.
        let offset = end - core::ptr::from_ref(chunk).addr();
        if offset > chunk.touched.load(Relaxed) {
            chunk.touched.store(offset, Relaxed);
        }
        self.cursor.set(new_end);
    }
}

/// How many of the first `size` bytes of a new block may be other than zero.
///
/// # Safety
///
/// `block` was just allocated by the calling thread, with `size`.
pub unsafe fn possibly_not_zero(block: NonNull<u8>, size: usize) -> usize {
    let header = large::header_of(block);
    // SAFETY: every live block lies behind a header.
    let chunk = unsafe { header.as_ref() };
    if large::is_mapped(chunk) {
        return 0;
    }
    let start = block.addr().get() - header.addr().get();
    // Relaxed: the thread that allocated the block owns the chunk.
    chunk.touched.load(Relaxed).saturating_sub(start).min(size)
}
