//! Large blocks of the hardened variant. Each has its own mapping between inaccessible pages,
//! unless the system refuses that mapping.

use core::ptr::NonNull;

use heapdrome_pages::Pages;

use crate::hardened::canary::{guard, is_guarded};
use crate::heap::large::allocate_large;
use crate::misuse::{Misuse, report};
use crate::process::HEAPS;
use crate::units::large::Large;

/// Allocates a block with its own mapping between guard pages. If the system refuses that mapping,
/// allocates an ordinary large block. Returns `None` if out of memory.
pub(crate) fn allocate_guarded(size: usize, alignment: usize) -> Option<Large> {
    let Some(block) = HEAPS.mapped.map_guarded(HEAPS.memory(), size, alignment) else {
        return allocate_large(&HEAPS, size, alignment);
    };
    // SAFETY: the block has `size` bytes, and its mapping consists of whole pages without another
    // block.
    unsafe { guard(block, size, HEAPS.memory().pages.page_size()) };
    Some(Large { block, clean: true })
}

/// Shrinks a block outside slabs in place. `size` is at most the size of the block.
///
/// # Safety
///
/// The block belongs to the caller, who no longer needs bytes after the first `size`.
pub(crate) unsafe fn shrink_guarded(block: NonNull<u8>, size: usize) {
    let entry = HEAPS.mapped.find(block.addr().get());
    // SAFETY: by this function's contract, the block belongs to the caller, who no longer needs
    // bytes after the first `size`. In the first arm, the block has `entry.size` bytes and lies
    // between guard pages, because its mapping does not begin with it. A block that shrinks does
    // not move.
    unsafe {
        match entry {
            Some(entry) if entry.block != entry.base => {
                look_at_edges(block, entry.size);
                let pages = &HEAPS.memory().pages;
                HEAPS.mapped.shrink_guarded(pages, block.addr().get(), size);
                guard(block, size, HEAPS.memory().pages.page_size());
            }
            // This block has no guard pages. If the system refuses to shrink it, it keeps its size.
            _ => {
                HEAPS.mapped.resize(HEAPS.memory(), block, size);
            }
        }
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
