//! Blocks that have their own mapping: a chunk's header in front, whose owner is `MAPPED`.

use core::ptr::NonNull;
use core::sync::atomic::Ordering::Relaxed;

use heapdrome_pages::{Access, Linux, Pages, Remap};

use crate::chunk::{self, Chunk, MAPPED, SIZE};
use crate::footprint::{self, BLOCKS, MAPPINGS};
use crate::threads;

/// The block begins this far behind the header, unless its alignment asks for more.
const HEADER: usize = 128;

/// A block with its own mapping, all zero.
pub fn allocate(size: usize, alignment: usize) -> Option<NonNull<u8>> {
    let alignment = alignment.max(HEADER);
    // From the header to the block: the header of a block that is aligned to more than a chunk
    // stands one chunk size before it.
    let offset = alignment.min(SIZE);
    let size = size.max(1);
    let mapped = whole_pages(offset.checked_add(size)?)?;
    let front = alignment - offset;
    let start = reserve(mapped.checked_add(front)?, alignment.max(SIZE))?;
    // SAFETY: the header lies within the reservation, whose front nobody needs. A front that the
    // system will not take back costs address space only.
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

/// As many bytes in whole pages; `None` where there are no numbers for them.
fn whole_pages(bytes: usize) -> Option<usize> {
    bytes.checked_next_multiple_of(Linux.page_size())
}

/// Address space from the system, if need be after it has got chunks back.
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
    // SAFETY: the caller's promise. Relaxed: other threads learn of the header with the block.
    unsafe {
        let header = header.as_ref();
        header.touched.store(mapped, Relaxed);
        header.end.store(size, Relaxed);
        header.owner.store(MAPPED, Relaxed);
    }
}

/// Counts mappings, for statistics: wrapping, so that it can subtract.
fn count(bytes: usize, blocks: usize) {
    // Relaxed: counts for statistics.
    MAPPINGS.fetch_add(bytes, Relaxed);
    BLOCKS.fetch_add(blocks, Relaxed);
    footprint::note_peak();
}

/// Gives a block back to the system.
///
/// # Safety
///
/// `header` is that of a live block with its own mapping, which the caller gives up.
pub unsafe fn free(header: NonNull<Chunk>) {
    // SAFETY: the caller's promise.
    unsafe {
        let mapped = header.as_ref().touched.load(Relaxed);
        count(mapped.wrapping_neg(), usize::MAX);
        // A mapping that the system will not take back is lost, but keeps nothing else from
        // working.
        let _ = Linux.release(header.cast(), mapped);
    }
}

/// Changes a block's size, moving pages and not bytes. `None` leaves the block as it was.
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
    // SAFETY: the caller's promise.
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

/// Changes a mapping's size; it stays aligned as a chunk.
///
/// # Safety
///
/// `header` begins a mapping of `mapped` bytes.
unsafe fn remap(header: NonNull<Chunk>, mapped: usize, needed: usize) -> Option<NonNull<Chunk>> {
    // SAFETY: the caller's promise.
    if let Some(same) = unsafe { Linux.remap(header.cast(), mapped, needed, Remap::InPlace) } {
        return Some(same.cast());
    }
    let target = Linux.reserve(needed, SIZE, Access::None)?;
    // Where this fails, the target may be gone; releasing it could then take what another thread
    // was given there since, so it is left alone, which costs address space at worst. SAFETY: the
    // target was just reserved.
    let moved = unsafe { Linux.remap(header.cast(), mapped, needed, Remap::Onto(target))? };
    Some(moved.cast())
}

/// Whether a block's header says that it has its own mapping.
pub fn is_mapped(header: &Chunk) -> bool {
    // Relaxed: the owner of such a block never changes.
    header.owner.load(Relaxed) == MAPPED
}

/// The header of a block.
#[inline]
pub fn header_of(block: NonNull<u8>) -> NonNull<Chunk> {
    // SAFETY: a block lies behind a header, which is not at address zero.
    unsafe { NonNull::new_unchecked(chunk::of(block.as_ptr())) }
}
