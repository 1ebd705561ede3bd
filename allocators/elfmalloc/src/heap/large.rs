//! Blocks larger than any class: runs of units, and mappings of their own.

use core::ptr::{NonNull, null_mut};
use heapdrome_pages::atomic::Ordering::Relaxed;

use heapdrome_pages::{Access, Pages, Remap};

use crate::heap::backend::Backend;
use crate::size_class::{SizeClass, UNIT, UNIT_SHIFT};
use crate::slabs::slab::{Misuse, Place, Slab};
use crate::units::mapped::Mapped;
use crate::units::pool::{LARGEST_RUN, Pool, Run};

/// From this size on a block that has to move to grow gets its own mapping, which the system can
/// move without copying.
const GROWS_BY_REMAP: usize = 1 << 20;

/// A new large block.
#[derive(Clone, Copy, Debug)]
pub struct Large {
    /// Where it begins.
    pub block: NonNull<u8>,
    /// True where it reads as zero.
    pub clean: bool,
}

impl<P: Pages> Backend<P> {
    /// A block of at least `size` bytes at a multiple of `alignment`; any size, but meant for those
    /// that no class serves.
    pub fn allocate_large(&self, size: usize, alignment: usize) -> Option<Large> {
        let units = size.max(1).checked_next_multiple_of(UNIT)? >> UNIT_SHIFT;
        let fits = units <= LARGEST_RUN && alignment <= LARGEST_RUN << UNIT_SHIFT;
        if fits && let Some(large) = self.allocate_in_run(units, alignment) {
            return Some(large);
        }
        if let Some(large) = self.map_block(size, alignment) {
            self.make_way(units, None);
            return Some(large);
        }
        // What the system refuses may be free in an arena. For what no arena has room for, nothing is given up.
        let possible = !fits && self.pool.lock().may_hold(units);
        possible
            .then(|| self.allocate_in_run(units, alignment))
            .flatten()
    }

    fn allocate_in_run(&self, units: usize, alignment: usize) -> Option<Large> {
        let alignment = alignment.max(UNIT);
        self.before_growth(units);
        let run = self.allocate_run(units, alignment).or_else(|| {
            self.release_kept();
            self.allocate_run(units, alignment)
        })?;
        self.make_way(run.fresh, Some(run));
        Some(self.start_large(run))
    }

    /// Makes a new run one block.
    fn start_large(&self, run: Run) -> Large {
        // SAFETY: the run is the caller's, and so is its first descriptor; runs lie in the map's arena, if it has one.
        unsafe {
            (*run.slab).base = run.base.as_ptr();
            (*run.slab).class = SizeClass::LARGE;
            (*run.slab).place = Place::Large;
            (*run.slab).units = run.units as u32;
            (*run.slab).head_distance = 0;
            (*run.slab).bin.store(null_mut(), Relaxed);
            self.map.set(run.base, 1, SizeClass::LARGE);
        }
        Large {
            block: run.base,
            clean: run.clean,
        }
    }

    /// A block with its own mapping.
    fn map_block(&self, size: usize, alignment: usize) -> Option<Large> {
        let page = self.pages.page_size();
        let bytes = size.max(1).checked_next_multiple_of(page)?;
        let base = self
            .pages
            .reserve(bytes, alignment.max(page), Access::ReadWrite)?;
        let entry = Mapped {
            block: base.as_ptr(),
            base: base.as_ptr(),
            bytes,
            size: bytes,
        };
        if !self.mapped.lock().insert(&self.pages, entry) {
            // SAFETY: the mapping was just made.
            unsafe { self.pages.release(base, bytes) };
            return None;
        }
        Some(Large {
            block: base,
            clean: true,
        })
    }

    /// A block with its own mapping between pages that cannot be touched. It ends as near to the one
    /// behind it as its alignment allows for.
    pub fn map_guarded(&self, size: usize, alignment: usize) -> Option<NonNull<u8>> {
        let page = self.pages.page_size();
        let front = alignment.max(page);
        let inner = size.max(1).checked_next_multiple_of(page)?;
        let bytes = inner.checked_add(front)?.checked_add(page)?;
        let base = self.pages.reserve(bytes, front, Access::None)?;
        // SAFETY: the mapping was just made: a front, the inner pages, and one page behind them.
        unsafe {
            let start = base.add(front);
            let skip = inner - size.max(1).next_multiple_of(alignment.min(page));
            let entry = Mapped {
                block: start.as_ptr().add(skip),
                base: base.as_ptr(),
                bytes,
                size,
            };
            let done = self.pages.protect(start, inner, Access::ReadWrite)
                && self.mapped.lock().insert(&self.pages, entry);
            if !done {
                self.pages.release(base, bytes);
                return None;
            }
            NonNull::new(entry.block)
        }
    }

    /// Leaves a block between guard pages `size` bytes, which are fewer than it has: the pages behind them go back, and
    /// cannot be touched either from now on.
    ///
    /// # Safety
    ///
    /// There is such a block at the address, and it is the caller's.
    pub unsafe fn shrink_guarded(&self, address: usize, size: usize) {
        let mut mapped = self.mapped.lock();
        let Some(entry) = mapped.remove(address) else {
            return;
        };
        // An entry has just become free, so that there is room for this one.
        mapped.insert(&self.pages, Mapped { size, ..entry });
        drop(mapped);
        let page = self.pages.page_size();
        let end = (address + size).next_multiple_of(page);
        let rest = entry.base.addr() + entry.bytes - page - end;
        if rest != 0 {
            // SAFETY: the pages lie in the block's mapping, behind what is left of it. Where the system refuses, they
            // are resident, or can be touched.
            unsafe {
                let start = NonNull::new_unchecked(entry.block.add(end - address));
                self.pages.purge(start, rest);
                self.pages.protect(start, rest, Access::None);
            }
        }
    }

    /// Gives a block with its own mapping back; false if there is none at `address`.
    ///
    /// # Safety
    ///
    /// Nobody uses the block any more.
    pub unsafe fn free_mapped(&self, address: usize) -> bool {
        let entry = self.mapped.lock().remove(address);
        let Some(entry) = entry else { return false };
        if let Some(base) = NonNull::new(entry.base) {
            // SAFETY: the mapping was the block's. Where the system refuses to unmap, at least the
            // memory goes back.
            unsafe {
                if !self.pages.release(base, entry.bytes) {
                    self.pages.purge(base, entry.bytes);
                }
            }
        }
        true
    }

    /// Gives a run back.
    ///
    /// # Errors
    ///
    /// The address is not that of a large block.
    ///
    /// # Safety
    ///
    /// The unit of the address is committed, and nobody uses the block any more.
    pub unsafe fn free_large(&self, address: usize) -> Result<(), Misuse> {
        // SAFETY: the caller's promise.
        unsafe {
            let slab = self.slab_of(address);
            if slab.is_null() || (*slab).place != Place::Large || (*slab).base.addr() != address {
                return Err(Misuse::NotABlock(address));
            }
            let base = NonNull::new_unchecked((*slab).base);
            let units = (*slab).units as usize;
            self.forget(slab, base);
            self.with_pool(|pool| pool.free(base.as_ptr(), units, true));
        }
        self.tick();
        Ok(())
    }

    /// # Safety
    ///
    /// The descriptor is that of a large block that nobody uses any more.
    unsafe fn forget(&self, slab: *mut Slab, base: NonNull<u8>) {
        // SAFETY: the caller's promise; the block is a run.
        unsafe {
            self.map.set(base, 1, SizeClass::NONE);
            (*slab).class = SizeClass::NONE;
            (*slab).place = Place::Nowhere;
        }
    }

    /// How many bytes a large block may hold.
    ///
    /// # Safety
    ///
    /// There is a large block at the address.
    pub unsafe fn large_usable(&self, address: usize) -> usize {
        // SAFETY: the caller's promise.
        unsafe { ((*self.slab_of(address)).units as usize) << UNIT_SHIFT }
    }

    /// Changes the size of a block that no slab holds without copying it; it may move. `None` leaves it as it was.
    ///
    /// # Safety
    ///
    /// The block at `block` is the caller's, if there is one.
    pub unsafe fn resize(&self, block: NonNull<u8>, size: usize) -> Option<NonNull<u8>> {
        // SAFETY: the caller's promise; there is a large block where a descriptor says so.
        unsafe {
            let slab = self.slab_of(block.addr().get());
            if slab.is_null() || (*slab).class != SizeClass::LARGE {
                return self.remap_block(block, size);
            }
            if self.resize_large(block, size) {
                return Some(block);
            }
            self.move_to_mapping(block, size)
        }
    }

    /// Changes the size of a large block without moving it; false where that cannot be done, and then it was to grow.
    ///
    /// # Safety
    ///
    /// There is a large block at `block`, which is the caller's.
    pub unsafe fn resize_large(&self, block: NonNull<u8>, size: usize) -> bool {
        let Some(bytes) = size.max(1).checked_next_multiple_of(UNIT) else {
            return false;
        };
        let wanted = bytes >> UNIT_SHIFT;
        // SAFETY: the block's descriptor is the caller's as long as the block is.
        unsafe {
            let slab = self.slab_of(block.addr().get());
            let units = (*slab).units as usize;
            if wanted < units {
                let tail = block.as_ptr().add(wanted << UNIT_SHIFT);
                (*slab).units = wanted as u32;
                self.with_pool(|pool| pool.free(tail, units - wanted, true));
                return true;
            }
            if wanted == units {
                return true;
            }
            let extend = |pool: &mut Pool| pool.extend(block.as_ptr(), units, wanted);
            if wanted > LARGEST_RUN || !self.with_pool(extend) {
                return false;
            }
            (*slab).units = wanted as u32;
        }
        true
    }

    /// Moves a block with its own mapping to another size, or leaves it where that is a little smaller; `None` leaves
    /// it as it was.
    ///
    /// # Safety
    ///
    /// If there is such a block, it is the caller's.
    unsafe fn remap_block(&self, block: NonNull<u8>, size: usize) -> Option<NonNull<u8>> {
        let bytes = size
            .max(1)
            .checked_next_multiple_of(self.pages.page_size())?;
        let mut mapped = self.mapped.lock();
        let entry = mapped
            .find(block.addr().get())
            .filter(|entry| entry.block == entry.base)?;
        if size <= entry.size && size > entry.size.saturating_sub(UNIT) {
            return Some(block);
        }
        // SAFETY: the mapping is the block's, and the caller's.
        let moved = unsafe {
            self.pages
                .remap(block, entry.bytes, bytes, Remap::MayMove)?
        };
        mapped.remove(block.addr().get());
        let entry = Mapped {
            block: moved.as_ptr(),
            base: moved.as_ptr(),
            bytes,
            size: bytes,
        };
        // An entry has just become free, so that there is room for this one.
        mapped.insert(&self.pages, entry);
        Some(moved)
    }

    /// Gives a large block a mapping of its own, with room for `size` bytes, without copying it; `None`
    /// leaves it as it was. Blocks that are to stay small have no use for that.
    ///
    /// # Safety
    ///
    /// There is a large block at `block`, which is the caller's and smaller.
    pub unsafe fn move_to_mapping(&self, block: NonNull<u8>, size: usize) -> Option<NonNull<u8>> {
        if size < GROWS_BY_REMAP {
            return None;
        }
        let bytes = size.checked_next_multiple_of(self.pages.page_size())?;
        // SAFETY: the block's descriptor and its units are the caller's; what was detached is this
        // function's, and whole again where it was copied back.
        unsafe {
            let slab = self.slab_of(block.addr().get());
            let units = (*slab).units as usize;
            let old = units << UNIT_SHIFT;
            let moved = self.pages.detach(block, old)?;
            let grown = self.pages.remap(moved, old, bytes, Remap::MayMove);
            let base = grown.unwrap_or(moved);
            let entry = Mapped {
                block: base.as_ptr(),
                base: base.as_ptr(),
                bytes,
                size: bytes,
            };
            if grown.is_none() || !self.mapped.lock().insert(&self.pages, entry) {
                block.copy_from_nonoverlapping(base, old);
                let held = if grown.is_none() { old } else { bytes };
                self.pages.release(base, held);
                return None;
            }
            self.forget(slab, block);
            self.with_pool(|pool| pool.free(block.as_ptr(), units, false));
            Some(base)
        }
    }

    /// A new block for one that could not grow where it is.
    pub fn allocate_grown(&self, size: usize) -> Option<NonNull<u8>> {
        let own = if size >= GROWS_BY_REMAP {
            self.map_block(size, 1)
        } else {
            None
        };
        own.or_else(|| self.allocate_large(size, 1))
            .map(|large| large.block)
    }
}
