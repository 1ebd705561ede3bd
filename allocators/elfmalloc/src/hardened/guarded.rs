//! Large blocks of the hardened variant. Each has its own mapping between inaccessible pages,
//! unless the system refuses that mapping.

use core::ptr::NonNull;

use heapdrome_malloc_abi::MIN_ALIGNMENT;
use heapdrome_pages::Pages;

use crate::hardened::canary::{guard, is_guarded};
use crate::heap::large::allocate_large;
use crate::misuse::{Misuse, report};
use crate::process::HEAPS;
use crate::units::large::Large;

/// Maps a block between guard pages, with `room` bytes into which it can grow, and writes its
/// canaries. Returns `None` if the system refuses.
fn map(size: usize, alignment: usize, room: usize) -> Option<NonNull<u8>> {
    let memory = HEAPS.memory();
    let block = HEAPS.mapped.map_guarded(memory, size, alignment, room)?;
    // SAFETY: the block has `size` bytes, and its mapping consists of whole pages without another
    // block.
    unsafe { guard(block, size, memory.pages.page_size()) };
    Some(block)
}

/// Allocates a block with its own mapping between guard pages. If the system refuses that mapping,
/// allocates an ordinary large block. Returns `None` if out of memory.
pub(crate) fn allocate_guarded(size: usize, alignment: usize) -> Option<Large> {
    match map(size, alignment, 0) {
        Some(block) => Some(Large { block, clean: true }),
        None => allocate_large(&HEAPS, size, alignment),
    }
}

/// Allocates a block between guard pages to replace a large block that could not grow in place. It
/// can grow to twice its size in place, so that a program that grows a block in small steps seldom
/// copies it. Returns `None` if out of memory.
pub(crate) fn allocate_growing(size: usize) -> Option<NonNull<u8>> {
    let without_room = || Some(allocate_guarded(size, MIN_ALIGNMENT)?.block);
    map(size, MIN_ALIGNMENT, size).or_else(without_room)
}

/// Resizes a block between guard pages in place. Returns false, without any change, if that is
/// impossible, or if the block does not lie between guard pages. Aborts the process if its canaries
/// were overwritten.
///
/// # Safety
///
/// The block belongs to the caller, who no longer needs bytes after the first `size`.
pub(crate) unsafe fn resize_guarded(block: NonNull<u8>, size: usize) -> bool {
    let entry = HEAPS.mapped.find(block.addr().get());
    // The mapping of a block without guard pages begins with the block.
    let Some(entry) = entry.filter(|entry| entry.block != entry.base) else {
        return false;
    };
    let pages = &HEAPS.memory().pages;
    // SAFETY: by this function's contract, the block belongs to the caller, who no longer needs
    // bytes after the first `size`. It has `entry.size` bytes and lies between guard pages.
    unsafe {
        look_at_edges(block, entry.size);
        let resized = HEAPS.mapped.resize_guarded(pages, entry, size);
        if resized {
            guard(block, size, pages.page_size());
        }
        resized
    }
}

/// Aborts the process if the canaries around a guarded block were overwritten.
///
/// # Safety
///
/// The block belongs to the caller, has `size` bytes, and lies between guard pages.
unsafe fn look_at_edges(block: NonNull<u8>, size: usize) {
    // SAFETY: by this function's contract, the block has `size` bytes and lies between guard pages,
    // so its pages contain no other block.
    if unsafe { !is_guarded(block, size, HEAPS.memory().pages.page_size()) } {
        report(Misuse::Around(block.addr().get()));
    }
}

/// Frees a block with its own mapping. Returns false if no such block begins at `block`. Aborts the
/// process if its canaries were overwritten.
///
/// # Safety
///
/// The caller no longer uses the block.
pub(crate) unsafe fn free_guarded(block: NonNull<u8>) -> bool {
    let address = block.addr().get();
    let Some(entry) = HEAPS.mapped.find(address) else {
        return false;
    };
    // SAFETY: by this function's contract, the caller no longer uses the block. It has `entry.size`
    // bytes, and lies between guard pages unless its mapping begins with it.
    unsafe {
        if entry.block != entry.base {
            look_at_edges(block, entry.size);
        }
        HEAPS.mapped.free(&HEAPS.memory().pages, address)
    }
}
