//! Gives blocks back to their slabs, and empty slabs to the pool.

use core::ptr::NonNull;

use heapdrome_pages::Pages;

use super::Shards;
use crate::misuse::Misuse;
use crate::size_class::{FIRST_SHARED, SizeClass};
use crate::slabs::bin::{Bin, ClassBin};
use crate::slabs::free_blocks::FreeBlocks;
use crate::slabs::partial::Slabs;
use crate::slabs::partial::held::{Detached, DetachedList};
use crate::slabs::shard::Shard;
use crate::slabs::slab::SlabRef;

/// Work that remains after blocks were given back to one bin.
struct Rest {
    /// Number of blocks that belong to other bins. They lie at the front of the list.
    blocks: usize,
    /// Slabs that have become empty.
    empties: DetachedList,
}

impl<P: Pages> Shards<P> {
    /// Gives blocks back to their slabs, which may belong to any bins. `home` is the bin of the
    /// calling thread, if it has one. Returns whether units went back to the pool.
    ///
    /// # Errors
    ///
    /// Returns an error if a pointer is not an allocated block. Other blocks in the list may then
    /// not have been given back.
    #[inline]
    pub fn give(
        &self,
        home: Option<ClassBin<'_>>,
        mut blocks: FreeBlocks<'_>,
    ) -> Result<bool, Misuse> {
        let class = blocks.class();
        let blocks = blocks.as_slice();
        let mut retired = false;
        let mut left = blocks.len();
        while left != 0 {
            // If another thread moves the slab in the meantime, this round gives none of its blocks
            // back, and the next round retries.
            let slab = self.slab_at(blocks[0])?;
            let bin = slab.bin().ok_or(Misuse::NotABlock(blocks[0].addr()))?;
            let bin = ClassBin { bin, class };
            let rest = self.give_to(bin, home, &mut blocks[..left])?;
            retired |= self.retire(rest.empties);
            left = rest.blocks;
        }
        Ok(retired)
    }

    #[inline]
    fn slab_at(&self, block: *mut u8) -> Result<SlabRef, Misuse> {
        self.slab_of(block.addr())
            .ok_or(Misuse::NotABlock(block.addr()))
    }

    /// Gives back the blocks whose slabs are in `bin`, and moves the others to the front of
    /// `blocks`.
    fn give_to(
        &self,
        bin: ClassBin<'_>,
        home: Option<ClassBin<'_>>,
        blocks: &mut [*mut u8],
    ) -> Result<Rest, Misuse> {
        let size = bin.class.size();
        let mut kept = 0;
        let mut index = 0;
        let mut empties = DetachedList::NONE;
        let own = home == Some(bin);
        // If a thread empties a slab of a small class in its own bin, the slab stays there. That
        // saves uses of the shared pool when a thread repeatedly allocates and frees.
        let keep = own && bin.class.number() < FIRST_SHARED;
        let mut slabs = bin.lock();
        while index < blocks.len() {
            let slab = self.slab_at(blocks[index])?;
            let Some(locked) = slabs.find(slab) else {
                blocks[kept] = blocks[index];
                kept += 1;
                index += 1;
                continue;
            };
            if !follows(blocks, index, size) && locked.give_one(blocks[index]) {
                index += 1;
                continue;
            }
            let given = slabs.give(slab, &blocks[index..], keep)?;
            index += given.count;
            if let Some(empty) = given.empty {
                empties.push(empty);
            }
        }
        if !own {
            slabs.remote_frees += (blocks.len() - kept) as u64;
        }
        Ok(Rest {
            blocks: kept,
            empties,
        })
    }

    /// Gives empty slabs back to the pool. Returns whether the list had slabs.
    #[inline]
    pub(super) fn retire(&self, empties: DetachedList) -> bool {
        let mut any = false;
        for slab in empties {
            self.retire_one(slab);
            any = true;
        }
        any
    }

    #[inline(never)]
    fn retire_one(&self, slab: Detached) {
        let bitmap = slab.slab().external_bits();
        let slab = slab.handle();
        let (class, units) = (slab.class(), slab.units());
        let Some(base) = NonNull::new(slab.base()) else {
            return;
        };
        if let Some(bitmap) = NonNull::new(bitmap) {
            // SAFETY: the bitmap belongs to this slab, which is in no bin and is not used again.
            unsafe { self.free_bitmap(bitmap, class) };
        }
        self.memory.map.set(base, units, SizeClass::NONE);
        slab.descriptor().each(units).for_each(|unit| unit.clear());
        // SAFETY: the slab is in no bin and all of its blocks are free, so no code uses its units.
        self.memory
            .with_pool(|pool| unsafe { pool.free(base.as_ptr(), units, true) });
    }

    /// Frees the external bitmap of a slab that was retired, or that could not be created.
    ///
    /// # Safety
    ///
    /// `words` was allocated as the bitmap of a slab of `class`, and no slab uses it.
    pub(super) unsafe fn free_bitmap(&self, words: NonNull<u64>, class: SizeClass) {
        let bytes = class.geometry().words() * 8;
        // SAFETY: by this function's contract, the words were allocated with this size and are no
        // longer used.
        unsafe { self.memory.structures.lock().free(words.cast(), bytes) };
    }

    /// Gives the empty slabs of a shard back to the pool, except in bins that another thread has
    /// locked. Returns whether it gave any back.
    pub fn retire_empties(&self, shard: &Shard) -> bool {
        self.retire_by(&shard.bins, Slabs::take_empties)
    }

    /// Gives the empty slabs of all shards back to the pool, except in bins that another thread has
    /// locked. Returns whether it gave any back.
    pub fn retire_all_empties(&self) -> bool {
        self.retire_all_by(Slabs::take_empties)
    }

    /// Gives the empty slabs that have been idle since the last call back to the pool, except in
    /// bins that another thread has locked. Returns whether it gave any back.
    pub fn retire_idle_empties(&self) -> bool {
        self.retire_all_by(Slabs::take_idle_empties)
    }

    fn retire_all_by(&self, take: impl Fn(&mut Slabs) -> DetachedList + Copy) -> bool {
        let mut any = false;
        for shard in self.all() {
            any |= self.retire_by(&shard.get().bins, take);
        }
        any
    }

    // Inlined, so that the loop over the bins calls no function for bins without an empty slab.
    #[inline(always)]
    fn retire_by(&self, bins: &[Bin], take: impl Fn(&mut Slabs) -> DetachedList) -> bool {
        let mut any = false;
        for bin in bins {
            // If another thread holds the lock, it is using the slabs: skip them.
            if let Some(mut slabs) = bin.try_lock() {
                let empties = take(&mut slabs);
                drop(slabs);
                any |= self.retire(empties);
            }
        }
        any
    }
}

/// Returns whether the next block in the list is adjacent in memory to this block. If so, there may
/// be a run of adjacent blocks, which are cheaper to give back in one batch.
#[inline(always)]
fn follows(blocks: &[*mut u8], index: usize, size: usize) -> bool {
    let Some(next) = blocks.get(index + 1) else {
        return false;
    };
    let here = blocks[index].addr();
    next.addr().abs_diff(here) == size
}
