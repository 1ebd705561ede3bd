//! Blocks that have their own mapping: a chunk's header precedes them, whose owner is `MAPPED`.

use core::ptr::NonNull;
use core::sync::atomic::Ordering::Relaxed;

use heapdrome_pages::{Access, Linux, Pages, Remap};

use crate::chunk::{self, Chunk, MAPPED, SIZE};
use crate::footprint::{self, BLOCKS, MAPPINGS};
use crate::threads;

/// Distance of the block from the header, unless its alignment requires more.
const HEADER: usize = 128;

/// Allocates a block with its own mapping, all zero.
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
    // to take the front back, it costs address space only.
    let header = unsafe {
        if front > 0 {
            let _ = Linux.release(start, front);
        }
        start.add(front)
    };
    count(mapped, 1);
    // SAFETY: zero is a valid header; the block lies within the reservation.
    unsafe {
        describe(header.cast(), mapped, mapped - offset);
        Some(header.add(offset))
    }
}

/// Rounds bytes up to whole pages; returns `None` on overflow.
fn whole_pages(bytes: usize) -> Option<usize> {
    bytes.checked_next_multiple_of(Linux.page_size())
}

/// Reserves address space. If the system refuses, releases chunks and tries again.
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

/// Fills in the header.
///
/// # Safety
///
/// The chunk's header is the calling thread's.
unsafe fn describe(header: NonNull<Chunk>, mapped: usize, size: usize) {
    // SAFETY: the header is the calling thread's. Relaxed: other threads learn of it with the
    // block.
    unsafe {
        let header = header.as_ref();
        header.touched.store(mapped, Relaxed);
        header.end.store(size, Relaxed);
        header.owner.store(MAPPED, Relaxed);
    }
}

/// Adds to the statistics of mappings. The addition wraps, so that it can subtract.
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
/// `header` is that of a live block with its own mapping, which the caller gives up.
pub unsafe fn free(header: NonNull<Chunk>) {
    // SAFETY: the header is that of a live block with its own mapping, which the caller gives up.
    unsafe {
        let mapped = header.as_ref().touched.load(Relaxed);
        count(mapped.wrapping_neg(), usize::MAX);
        // If the system refuses to take a mapping back, it is lost, without other effects.
        let _ = Linux.release(header.cast(), mapped);
    }
}

/// Resizes a block by moving pages instead of bytes. `None` leaves the block as it was.
///
/// # Safety
///
/// `block` is a live block with its own mapping, behind `header`.
pub unsafe fn resize(
    header: NonNull<Chunk>,
    block: NonNull<u8>,
    size: usize,
) -> Option<NonNull<u8>> {
    let offset = block.addr().get() - header.addr().get();
    // SAFETY: the header is that of a live block.
    let mapped = unsafe { header.as_ref() }.touched.load(Relaxed);
    let needed = whole_pages(offset.checked_add(size)?)?;
    let moved = if needed == mapped {
        header
    } else {
        // SAFETY: the mapping begins at the header, and is `mapped` bytes long.
        unsafe { remap(header, mapped, needed)? }
    };
    count(needed.wrapping_sub(mapped), 0);
    // SAFETY: the mapping has moved with its header, or stayed.
    unsafe {
        describe(moved, needed, needed - offset);
        Some(moved.cast::<u8>().add(offset))
    }
}

/// Resizes a mapping; it keeps the alignment of a chunk.
///
/// # Safety
///
/// `header` begins a mapping of `mapped` bytes.
unsafe fn remap(header: NonNull<Chunk>, mapped: usize, needed: usize) -> Option<NonNull<Chunk>> {
    // SAFETY: the header begins a mapping of `mapped` bytes.
    if let Some(same) = unsafe { Linux.remap(header.cast(), mapped, needed, Remap::InPlace) } {
        return Some(same.cast());
    }
    let target = Linux.reserve(needed, SIZE, Access::None)?;
    // If this fails, the target may be gone. Releasing it could then release a new mapping of
    // another thread, so it is left alone, which costs at most address space. SAFETY: the target
    // was just reserved, and the header begins a mapping of `mapped` bytes.
    let moved = unsafe { Linux.remap(header.cast(), mapped, needed, Remap::Onto(target))? };
    Some(moved.cast())
}

/// Returns whether a block has its own mapping, according to its header.
pub fn is_mapped(header: &Chunk) -> bool {
    // Relaxed: the owner of such a block never changes.
    header.owner.load(Relaxed) == MAPPED
}

/// Returns the header of a block.
#[inline]
pub fn header_of(block: NonNull<u8>) -> NonNull<Chunk> {
    // SAFETY: a block lies behind a header, which is not at address zero.
    unsafe { NonNull::new_unchecked(chunk::of(block.as_ptr())) }
}
