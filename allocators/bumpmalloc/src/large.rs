//! Blocks with their own mapping. A `Chunk` header precedes each block. The header's `owner` is
//! `MAPPED`.

use core::ptr::NonNull;
use core::sync::atomic::Ordering::Relaxed;

use heapdrome_pages::{Access, Linux, Pages, Remap};

use crate::chunk::{self, Chunk, MAPPED, SIZE};
use crate::footprint::{self, BLOCKS, MAPPINGS};
use crate::threads;

/// Distance of the block from the header, unless the alignment requires more.
const HEADER: usize = 128;

/// Allocates a zeroed block with its own mapping.
pub fn allocate(size: usize, alignment: usize) -> Option<NonNull<u8>> {
    let alignment = alignment.max(HEADER);
    // Distance from the header to the block. The header of a block that is aligned to more than a
    // chunk lies one chunk size before it.
    let offset = alignment.min(SIZE);
    let size = size.max(1);
    let mapped = whole_pages(offset.checked_add(size)?)?;
    let front = alignment - offset;
    let start = reserve(mapped.checked_add(front)?, alignment.max(SIZE))?;
    // SAFETY: the header lies within the reservation, whose front is unused. If the system refuses
    // to release the front, only address space is lost.
    let header = unsafe {
        if front > 0 {
            let _ = Linux.release(start, front);
        }
        start.add(front)
    };
    count(mapped, 1);
    // SAFETY: all-zero memory is a valid header, which only this thread knows, and the block lies
    // within the reservation.
    unsafe {
        describe(header.cast(), mapped, mapped - offset);
        Some(header.add(offset))
    }
}

/// Rounds bytes up to whole pages; returns `None` on overflow.
fn whole_pages(bytes: usize) -> Option<usize> {
    bytes.checked_next_multiple_of(Linux.page_size())
}

/// Reserves address space. If the system refuses, releases chunks and retries.
fn reserve(size: usize, alignment: usize) -> Option<NonNull<u8>> {
    let ask = || Linux.reserve(size, alignment, Access::ReadWrite);
    ask().or_else(|| {
        if threads::release_chunks() {
            ask()
        } else {
            None
        }
    })
}

/// Writes the header of a block with its own mapping.
///
/// # Safety
///
/// `header` points to a mapped header that belongs to the calling thread.
unsafe fn describe(header: NonNull<Chunk>, mapped: usize, size: usize) {
    // SAFETY: by this function's contract, the header is mapped and belongs to the calling thread.
    // Relaxed: other threads access it only after they have received the block.
    unsafe {
        let header = header.as_ref();
        header.touched.store(mapped, Relaxed);
        header.end.store(size, Relaxed);
        header.owner.store(MAPPED, Relaxed);
    }
}

/// Adds to the statistics of mappings. The additions wrap, so a wrapped negative number subtracts.
fn count(bytes: usize, blocks: usize) {
    // Relaxed: statistics, on which no other memory depends.
    MAPPINGS.fetch_add(bytes, Relaxed);
    BLOCKS.fetch_add(blocks, Relaxed);
    footprint::note_peak();
}

/// Frees a block, and returns its memory to the system.
///
/// # Safety
///
/// `header` belongs to a live block with its own mapping, which the caller no longer uses.
pub unsafe fn free(header: NonNull<Chunk>) {
    // SAFETY: by this function's contract, the header belongs to a live block with its own mapping,
    // which the caller no longer uses. The mapping begins at the header and has `touched` bytes.
    unsafe {
        let mapped = header.as_ref().touched.load(Relaxed);
        count(mapped.wrapping_neg(), usize::MAX);
        // If the system refuses to release the mapping, it leaks. Nothing else depends on the
        // release.
        let _ = Linux.release(header.cast(), mapped);
    }
}

/// Resizes a block by resizing its mapping, which may move, without copying. Returns `None`, with
/// the block unchanged, if that is impossible.
///
/// # Safety
///
/// `block` is a live block with its own mapping, behind `header`. No other thread uses it during
/// the call, and the caller does not use it again if the result is another block.
pub unsafe fn resize(
    header: NonNull<Chunk>,
    block: NonNull<u8>,
    size: usize,
) -> Option<NonNull<u8>> {
    let offset = block.addr().get() - header.addr().get();
    // SAFETY: the header belongs to a live block, by this function's contract.
    let mapped = unsafe { header.as_ref() }.touched.load(Relaxed);
    // The mapping stays large enough for a whole header, since references to headers exist.
    let needed = whole_pages(offset.checked_add(size)?.max(size_of::<Chunk>()))?;
    let moved = if needed == mapped {
        header
    } else {
        // SAFETY: the mapping begins at the header, and is `mapped` bytes long. By this function's
        // contract, no other thread uses it, and the caller does not use the old block again if it
        // moves.
        unsafe { remap(header, mapped, needed)? }
    };
    count(needed.wrapping_sub(mapped), 0);
    // SAFETY: the mapping begins at `moved`, has `needed` bytes, and belongs to the calling thread.
    unsafe {
        describe(moved, needed, needed - offset);
        Some(moved.cast::<u8>().add(offset))
    }
}

/// Resizes a mapping, which stays aligned to [`SIZE`].
///
/// # Safety
///
/// `header` begins a mapping of `mapped` bytes, which no other thread uses. The caller does not use
/// the old mapping again if it moves.
unsafe fn remap(header: NonNull<Chunk>, mapped: usize, needed: usize) -> Option<NonNull<Chunk>> {
    // SAFETY: by this function's contract, the header begins a mapping of `mapped` bytes, which no
    // other thread uses. `needed` is a multiple of the page size and not zero. The bytes that a
    // shrink releases lie behind the block's new end.
    if let Some(same) = unsafe { Linux.remap(header.cast(), mapped, needed, Remap::InPlace) } {
        return Some(same.cast());
    }
    let target = Linux.reserve(needed, SIZE, Access::None)?;
    // If this fails, the system may already have released the target. Do not release it again,
    // since another thread may have a new mapping there; at most address space is lost. SAFETY: the
    // target was just reserved and is unused. The header begins a mapping of `mapped` bytes, which
    // no other thread uses.
    let moved = unsafe { Linux.remap(header.cast(), mapped, needed, Remap::Onto(target))? };
    Some(moved.cast())
}

/// Returns whether a block has its own mapping, according to its header.
pub fn is_mapped(header: &Chunk) -> bool {
    // Relaxed: while a block is live, its header's owner neither becomes nor ceases to be `MAPPED`.
    header.owner.load(Relaxed) == MAPPED
}

/// Returns the header of a block.
#[inline]
pub fn header_of(block: NonNull<u8>) -> NonNull<Chunk> {
    // SAFETY: a block lies behind a header, which is not at address zero.
    unsafe { NonNull::new_unchecked(chunk::of(block.as_ptr())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no mremap")]
    fn a_mapping_that_shrinks_keeps_room_for_its_header() {
        let block = allocate(1 << 20, 1).expect("there is memory");
        let header = NonNull::new(chunk::of(block.as_ptr())).expect("a header");
        // SAFETY: the block is live and belongs to this test, and no reference to its header exists
        // while it is resized and freed.
        unsafe {
            let smaller = resize(header, block, 100).expect("it shrinks in place");
            assert_eq!(smaller, block);
            assert!(header.as_ref().touched.load(Relaxed) >= size_of::<Chunk>());
            free(header);
        }
    }
}
