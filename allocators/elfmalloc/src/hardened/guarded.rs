//! Large blocks of the hardened variant: mappings of their own, between pages that cannot be
//! touched.

use core::ptr::NonNull;

use heapdrome_pages::Pages;

use crate::hardened::canary::{guard, is_guarded};
use crate::heap::large::allocate_large;
use crate::misuse::{Misuse, report};
use crate::process::HEAPS;
use crate::units::large::Large;

/// A block with its own mapping, between guard pages; or one without, where the system allows for
/// no more mappings or addresses.
pub(crate) fn allocate_guarded(size: usize, alignment: usize) -> Option<Large> {
    let pages = &HEAPS.memory().pages;
    let Some(block) = HEAPS.mapped.map_guarded(pages, size, alignment) else {
        return allocate_large(&HEAPS, size, alignment);
    };
    // SAFETY: the mapping has whole pages.
    unsafe { guard(block, size, HEAPS.memory().pages.page_size()) };
    Some(Large { block, clean: true })
}

/// Leaves a block that is no slab's `size` bytes, which are fewer than it has, without moving it.
///
/// # Safety
///
/// The block is the caller's.
pub(crate) unsafe fn shrink_guarded(block: NonNull<u8>, size: usize) {
    let entry = HEAPS.mapped.find(block.addr().get());
    // SAFETY: the caller's promise.
    unsafe {
        match entry {
            Some(entry) if entry.block != entry.base => {
                look_at_edges(block, entry.size);
                let pages = &HEAPS.memory().pages;
                HEAPS.mapped.shrink_guarded(pages, block.addr().get(), size);
                guard(block, size, HEAPS.memory().pages.page_size());
            }
            // It has no guard pages. Where the system does not let it shrink, it stays as large as
            // it is.
            _ => {
                HEAPS.mapped.resize(HEAPS.memory(), block, size);
            }
        }
    }
}

/// Ends the process if something was written around a guarded block.
///
/// # Safety
///
/// The block is the caller's, and has `size` bytes.
unsafe fn look_at_edges(block: NonNull<u8>, size: usize) {
    // SAFETY: the caller's promise.
    if unsafe { !is_guarded(block, size, HEAPS.memory().pages.page_size()) } {
        report(Misuse::Around(block.addr().get()));
    }
}

/// Takes a guarded block back; false if there is none at `address`.
///
/// # Safety
///
/// The caller gives it up.
pub(crate) unsafe fn free_guarded(block: NonNull<u8>) -> bool {
    let address = block.addr().get();
    let Some(entry) = HEAPS.mapped.find(address) else {
        return false;
    };
    // SAFETY: the block was the caller's.
    unsafe {
        if entry.block != entry.base {
            look_at_edges(block, entry.size);
        }
        HEAPS.mapped.free(&HEAPS.memory().pages, address)
    }
}
