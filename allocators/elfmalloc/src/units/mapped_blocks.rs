//! Large blocks with their own mappings.

use core::ptr::NonNull;

use heapdrome_pages::{Access, Advice, Lock, Pages, Remap};

use crate::size_class::{UNIT, UNIT_SHIFT};
use crate::units::amount::Units;
use crate::units::arena::HUGE;
use crate::units::growth::HUGE_FROM;
use crate::units::large::{Large, forget, large_at, resize_large};
use crate::units::mapped::{Mapped, MappedTable};
use crate::units::memory::Memory;

/// Size from which a block that must move to grow gets its own mapping. The system can move a
/// mapping without copying.
pub const GROWS_BY_REMAP: usize = 1 << 20;

/// Returns whether the unused part of the last huge page would be small in proportion to a mapping
/// of `bytes`.
fn suits_huge_pages(bytes: usize) -> bool {
    Units::filled_by(bytes).count() >= HUGE_FROM
}

/// Requests huge pages for a block's mapping if they suit it, unless the settings refuse them.
fn request_huge_pages<P: Pages>(memory: &Memory<P>, base: NonNull<u8>, bytes: usize) {
    if suits_huge_pages(bytes) && memory.pool.lock().huge.wanted() {
        // SAFETY: the mapping belongs to one block, whose contents the advice does not change.
        unsafe { memory.pages.advise(base, bytes, Advice::HugePages) };
    }
}

/// Blocks with their own mappings.
#[derive(Debug)]
pub struct MappedBlocks {
    /// Table of the blocks. Lock order: this lock precedes the pool's.
    pub table: Lock<MappedTable>,
}

impl MappedBlocks {
    /// Creates an empty set of blocks.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            table: Lock::new(MappedTable::new()),
        }
    }

    /// Returns the entry of the block that begins at `address`.
    #[must_use]
    pub fn find(&self, address: usize) -> Option<Mapped> {
        self.table.lock().find(address)
    }

    /// Allocates a block with its own mapping. Returns `None` if out of memory.
    pub fn map<P: Pages>(
        &self,
        memory: &Memory<P>,
        size: usize,
        alignment: usize,
    ) -> Option<Large> {
        let pages = &memory.pages;
        let page = pages.page_size();
        let bytes = size.max(1).checked_next_multiple_of(page)?;
        let huge = if suits_huge_pages(bytes) {
            HUGE << UNIT_SHIFT
        } else {
            page
        };
        let base = pages.reserve(bytes, alignment.max(huge), Access::ReadWrite)?;
        request_huge_pages(memory, base, bytes);
        let entry = Mapped::whole(base, bytes);
        if !self.table.lock().insert(pages, entry) {
            // SAFETY: the mapping was just made, and no other code uses it.
            unsafe { pages.release(base, bytes) };
            return None;
        }
        Some(Large {
            block: base,
            clean: true,
        })
    }

    /// Allocates a block with its own mapping between inaccessible pages. Returns `None` if out of
    /// memory.
    ///
    /// Without `room`, the block ends as close to the inaccessible page behind it as its alignment
    /// allows. With `room`, it begins on a page, and can later grow by `room` bytes in place.
    pub fn map_guarded<P: Pages>(
        &self,
        memory: &Memory<P>,
        size: usize,
        alignment: usize,
        room: usize,
    ) -> Option<NonNull<u8>> {
        let pages = &memory.pages;
        let page = pages.page_size();
        let front = alignment.max(page);
        let inner = size.max(1).checked_next_multiple_of(page)?;
        let most = inner.checked_add(room)?.checked_next_multiple_of(page)?;
        let bytes = most.checked_add(front)?.checked_add(page)?;
        let base = pages.reserve(bytes, front, Access::None)?;
        // SAFETY: the mapping is new, and no other code uses it yet. It consists of the front, the
        // inner pages, the room, and one page behind them, so all addresses lie in it.
        unsafe {
            let start = base.add(front);
            let skip = match room {
                0 => inner - size.max(1).next_multiple_of(alignment.min(page)),
                _ => 0,
            };
            let entry = Mapped {
                block: start.as_ptr().add(skip),
                base: base.as_ptr(),
                bytes,
                size,
            };
            let done = pages.protect(start, inner, Access::ReadWrite)
                && self.table.lock().insert(pages, entry);
            if !done {
                pages.release(base, bytes);
                return None;
            }
            request_huge_pages(memory, start, most);
            NonNull::new(entry.block)
        }
    }

    /// Resizes a block between guard pages in place to `size` bytes. Purges the pages that it no
    /// longer needs and makes them inaccessible. Returns false, without any change, if its mapping
    /// has no room, or if the system refuses.
    ///
    /// # Safety
    ///
    /// `entry` is the entry of a block between guard pages. The block belongs to the caller, who no
    /// longer needs bytes after the first `size`.
    pub unsafe fn resize_guarded(&self, pages: &impl Pages, entry: Mapped, size: usize) -> bool {
        let page = pages.page_size();
        let address = entry.block.addr();
        let behind = entry.base.addr() + entry.bytes - page;
        if size > behind - address {
            return false;
        }
        // Exactly the pages from the block's first to its last are accessible.
        let [before, after] = [entry.size, size].map(|size| {
            let end = address + size.max(1);
            end.next_multiple_of(page) - address
        });
        // SAFETY: the pages lie in the block's mapping, behind its old or its new end. The caller
        // does not need the pages behind the new end. If the system refuses to purge or to protect
        // these, they stay resident or accessible.
        unsafe {
            if after > before {
                let start = NonNull::new_unchecked(entry.block.add(before));
                if !pages.protect(start, after - before, Access::ReadWrite) {
                    return false;
                }
            }
            self.table.lock().set_size(address, size);
            if after < before {
                let start = NonNull::new_unchecked(entry.block.add(after));
                pages.purge(start, before - after);
                pages.protect(start, before - after, Access::None);
            }
        }
        true
    }

    /// Frees a block with its own mapping. Returns false if no such block begins at `address`.
    ///
    /// # Safety
    ///
    /// If there is such a block, the caller no longer uses it.
    pub unsafe fn free(&self, pages: &impl Pages, address: usize) -> bool {
        let entry = self.table.lock().remove(address);
        let Some(entry) = entry else { return false };
        if let Some(base) = NonNull::new(entry.base) {
            // SAFETY: the mapping belongs only to the block, which the caller no longer uses. If
            // the system refuses to unmap it, at least its memory is returned to the system.
            unsafe {
                if !pages.release(base, entry.bytes) {
                    pages.purge(base, entry.bytes);
                }
            }
        }
        true
    }

    /// Resizes a block outside slabs without copying; the block may move. Returns `None`, without
    /// any change, if that is impossible.
    ///
    /// # Safety
    ///
    /// If a block begins at `block`, it belongs to the caller, who no longer needs bytes after the
    /// first `size`. The caller does not use the block again if the result is another block.
    pub unsafe fn resize<P: Pages>(
        &self,
        memory: &Memory<P>,
        block: NonNull<u8>,
        size: usize,
    ) -> Option<NonNull<u8>> {
        // SAFETY: this function's contract includes those of the called functions. A block that
        // `resize_large` cannot resize is smaller than `size`.
        unsafe {
            if large_at(memory, block.addr().get()).is_none() {
                return self.remap(memory, block, size);
            }
            if resize_large(memory, block, size) {
                return Some(block);
            }
            self.move_to_mapping(memory, block, size)
        }
    }

    /// Resizes the mapping of a block; the block may move. If the block would shrink by less than a
    /// unit, leaves it unchanged. Returns `None`, without any change, if there is no such block, if
    /// it has guard pages, or if the system refuses.
    ///
    /// # Safety
    ///
    /// If there is such a block, it belongs to the caller, who no longer needs bytes after the
    /// first `size`. The caller does not use the block again if the result is another block.
    unsafe fn remap<P: Pages>(
        &self,
        memory: &Memory<P>,
        block: NonNull<u8>,
        size: usize,
    ) -> Option<NonNull<u8>> {
        let pages = &memory.pages;
        let bytes = size.max(1).checked_next_multiple_of(pages.page_size())?;
        let mut mapped = self.table.lock();
        let entry = mapped
            .find(block.addr().get())
            .filter(|entry| entry.block == entry.base)?;
        if size <= entry.size && size > entry.size.saturating_sub(UNIT) {
            return Some(block);
        }
        // SAFETY: the mapping belongs to the block. By this function's contract, the block belongs
        // to the caller, who no longer uses the addresses that the call releases.
        let moved = unsafe { pages.remap(block, entry.bytes, bytes, Remap::MayMove)? };
        request_huge_pages(memory, moved, bytes);
        mapped.remove(block.addr().get());
        let entry = Mapped::whole(moved, bytes);
        // Removing the entry left room in the table, so this insertion succeeds.
        mapped.insert(pages, entry);
        Some(moved)
    }

    /// Moves a run's block to its own mapping of at least `size` bytes, without copying. Returns
    /// `None`, with the block unchanged, if that is impossible or `size` is below
    /// [`GROWS_BY_REMAP`].
    ///
    /// # Safety
    ///
    /// If a large block begins at `block`, it belongs to the caller and is smaller than `size`. The
    /// caller does not use it again if the result is another block.
    pub unsafe fn move_to_mapping<P: Pages>(
        &self,
        memory: &Memory<P>,
        block: NonNull<u8>,
        size: usize,
    ) -> Option<NonNull<u8>> {
        let pages = &memory.pages;
        if size < GROWS_BY_REMAP {
            return None;
        }
        let bytes = size.checked_next_multiple_of(pages.page_size())?;
        let run = large_at(memory, block.addr().get())?;
        let units = run.units();
        // SAFETY: the block's units belong to the caller, who no longer uses them on success. The
        // detached pages belong to this function, which copies them back on failure, so that the
        // block is complete again.
        unsafe {
            let old = units.bytes();
            let moved = pages.detach(block, old)?;
            let grown = pages.remap(moved, old, bytes, Remap::MayMove);
            let base = grown.unwrap_or(moved);
            let entry = Mapped::whole(base, bytes);
            if grown.is_none() || !self.table.lock().insert(pages, entry) {
                block.copy_from_nonoverlapping(base, old);
                let held = if grown.is_none() { old } else { bytes };
                pages.release(base, held);
                return None;
            }
            request_huge_pages(memory, base, bytes);
            forget(memory, run, block);
            memory.with_pool(|pool| pool.free(block.as_ptr(), units, false));
            Some(base)
        }
    }
}

impl Default for MappedBlocks {
    fn default() -> Self {
        Self::new()
    }
}
