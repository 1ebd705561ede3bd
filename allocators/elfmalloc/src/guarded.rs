//! Large blocks of the hardened variant: mappings of their own, between pages that cannot be touched.

use core::ptr::NonNull;

use heapdrome_pages::Pages;

use crate::canary::{guard, is_guarded};
use crate::elfmalloc::BACKEND;
use crate::large::Large;
use crate::misuse::report;
use crate::slab::Misuse;

/// A block with its own mapping, between guard pages; or one without, where the system allows for no
/// more mappings or addresses.
pub(crate) fn allocate_guarded(size: usize, alignment: usize) -> Option<Large> {
    let Some(block) = BACKEND.map_guarded(size, alignment) else {
        return BACKEND.allocate_large(size, alignment);
    };
    // SAFETY: the mapping has whole pages.
    unsafe { guard(block, size, BACKEND.pages.page_size()) };
    Some(Large { block, clean: true })
}

/// Takes a guarded block back; false if there is none at `address`.
///
/// # Safety
///
/// The caller gives it up.
pub(crate) unsafe fn free_guarded(block: NonNull<u8>) -> bool {
    let address = block.addr().get();
    let Some(entry) = BACKEND.mapped.lock().find(address) else {
        return false;
    };
    // SAFETY: the block was the caller's.
    unsafe {
        let guarded = entry.block != entry.base;
        if guarded && !is_guarded(block, entry.size, BACKEND.pages.page_size()) {
            report(Misuse::Around(address));
        }
        BACKEND.free_mapped(address)
    }
}
