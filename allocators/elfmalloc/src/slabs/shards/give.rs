//! Blocks that return to their slabs, and slabs that leave their bins: empty ones for the pool,
//! partial ones of ended threads for other threads.

use core::ptr::NonNull;

use heapdrome_pages::Pages;

use super::{Shards, each_bin_of};
use crate::misuse::Misuse;
use crate::size_class::SizeClass;
use crate::slabs::bin::{Bin, ClassBin};
use crate::slabs::free_blocks::FreeBlocks;
use crate::slabs::partial::Slabs;
use crate::slabs::partial::held::{Detached, DetachedList};
use crate::slabs::shard::{Shard, ShardRef};
use crate::slabs::slab::SlabRef;

/// Remaining work after blocks were given back to one bin.
struct Rest {
    /// Number of blocks that belong to other bins.
    blocks: usize,
    /// Slabs that have become empty.
    empties: DetachedList,
    /// Whether no thread uses the bin.
    idle: bool,
}

impl<P: Pages> Shards<P> {
    /// Gives blocks back to their slabs, in whatever bins those are; `home` is the bin of the
    /// calling thread. Returns whether units went back to the pool.
    ///
    /// # Errors
    ///
    /// A pointer that is no block in use. Blocks after it may not have been taken back.
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
            // If another thread moves the slab in the meantime, this round moves nothing.
            let slab = self.slab_at(blocks[0])?;
            let bin = slab.bin().ok_or(Misuse::NotABlock(blocks[0].addr()))?;
            let bin = ClassBin { bin, class };
            let rest = self.give_to(bin, home, &mut blocks[..left])?;
            retired |= self.retire(rest.empties);
            if rest.idle {
                retired |= self.move_to_common(bin);
            }
            left = rest.blocks;
        }
        Ok(retired)
    }

    #[inline]
    fn slab_at(&self, block: *mut u8) -> Result<SlabRef, Misuse> {
        self.slab_of(block.addr())
            .ok_or(Misuse::NotABlock(block.addr()))
    }

    /// Gives the blocks back that belong to `bin`, and moves the others to the front.
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
            let given = slabs.give(slab, &blocks[index..], own)?;
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
            idle: slabs.idle,
        })
    }

    /// Gives empty slabs back to the pool. Returns whether there were any.
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
            self.free_bitmap(bitmap, class);
        }
        self.memory.map.set(base, units, SizeClass::NONE);
        slab.descriptor().each(units).for_each(|unit| unit.clear());
        // SAFETY: the slab was in no bin and all of its blocks were free, so its units are in no
        // use.
        self.memory
            .with_pool(|pool| unsafe { pool.free(base.as_ptr(), units, true) });
    }

    /// Frees the bitmap of a slab that was retired, or whose memory was refused.
    pub(super) fn free_bitmap(&self, words: NonNull<u64>, class: SizeClass) {
        let bytes = class.geometry().words() * 8;
        // SAFETY: the words were allocated with this size, and the slab that they were for does not
        // exist.
        unsafe { self.memory.structures.lock().free(words.cast(), bytes) };
    }

    /// Gives the empty slabs of a shard back to the pool. Returns whether there were any.
    pub fn retire_empties(&self, shard: ShardRef) -> bool {
        self.retire_by(&shard.get().bins, Slabs::take_empties)
    }

    /// Gives all empty slabs of all shards back to the pool. Returns whether there were any.
    pub fn retire_all_empties(&self) -> bool {
        self.retire_all_by(Slabs::take_empties)
    }

    /// Gives those empty slabs back to the pool that were idle since the last call. Returns whether
    /// there were any.
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

    fn retire_by(&self, bins: &[Bin], take: impl Fn(&mut Slabs) -> DetachedList) -> bool {
        let mut any = false;
        for bin in bins {
            // If another thread holds the lock, it uses the slabs.
            if let Some(mut slabs) = bin.try_lock() {
                let empties = take(&mut slabs);
                drop(slabs);
                any |= self.retire(empties);
            }
        }
        any
    }

    /// Empties the bins of a shard that no thread uses. Returns whether units went back to the
    /// pool.
    pub(super) fn move_all_to_common(&self, shard: &Shard) -> bool {
        let mut retired = false;
        each_bin_of(shard, &mut |bin| {
            if bin.lock().slabs != 0 {
                retired |= self.move_to_common(bin);
            }
        });
        retired
    }

    /// Moves the partial slabs of a bin that no thread uses where others find them, and gives its
    /// empty slabs back to the pool. Returns whether there were empty ones.
    pub fn move_to_common(&self, bin: ClassBin<'_>) -> bool {
        let mut source = bin.lock();
        // A new thread may have been attached in the meantime.
        if !source.idle {
            return false;
        }
        let empties = source.take_empties();
        // The shard's bin is locked before the common one; no thread takes the locks in the other
        // order.
        let mut target = self.common[bin.class.number()].lock();
        while let Some(slab) = source.detach() {
            target.attach(slab);
        }
        drop(target);
        drop(source);
        self.retire(empties)
    }
}

/// Returns whether the next block is this one's neighbour in memory. If so, there may be a whole
/// run of neighbours, which is worth giving back in one batch.
#[inline(always)]
fn follows(blocks: &[*mut u8], index: usize, size: usize) -> bool {
    let Some(next) = blocks.get(index + 1) else {
        return false;
    };
    let here = blocks[index].addr();
    next.addr().abs_diff(here) == size
}
