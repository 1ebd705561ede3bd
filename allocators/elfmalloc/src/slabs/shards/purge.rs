//! Purges free pages in slabs.

use core::ptr::NonNull;

use heapdrome_pages::Pages;

use super::Shards;
use crate::size_class::SizeClass;
use crate::slabs::bin::ClassBin;
use crate::slabs::partial::Slabs;
use crate::slabs::partial::held::DetachedList;
use crate::slabs::partial::purge::{Bits, Claimed};
use crate::units::amount::Units;

/// Maximum number of slabs of a bin that are claimed at the same time, or purged in one epoch. Each
/// slab may cost several system calls.
const SLABS: usize = 256;

impl<P: Pages> Shards<P> {
    /// Purges the pages of free blocks that were idle throughout the epoch, in slabs in which
    /// enough blocks were idle.
    #[cold]
    pub fn purge_idle_slabs(&self) {
        self.each_bin(|bin| {
            // If another thread holds the lock, it is using the slabs: skip them until the next
            // epoch.
            let Some(mut slabs) = bin.try_lock() else {
                return;
            };
            let due = slabs.mark_idle(SLABS);
            drop(slabs);
            self.purge_due(bin, due);
        });
    }

    /// Purges all pages that lie entirely within free blocks and may be resident. Returns whether
    /// pages were purged.
    #[cold]
    pub fn purge_all_slabs(&self) -> bool {
        let mut any = false;
        self.each_bin(|bin| {
            let due = Slabs::mark_free(&mut bin.lock());
            any |= self.purge_due(bin, due);
        });
        any
    }

    /// Purges the free pages of up to `most` slabs that are due. Returns whether pages were purged.
    #[cold]
    fn purge_due(&self, bin: ClassBin<'_>, most: usize) -> bool {
        let mut any = false;
        let mut left = most;
        while left != 0 {
            // Held until all claimed slabs are back in their lists, so that purges do not overlap.
            let purging = self.purging.lock();
            let claimed = bin.lock().claim(left.min(SLABS));
            if claimed.is_empty() {
                break;
            }
            let mut empties = DetachedList::NONE;
            for slab in claimed {
                any |= self.purge_claimed(bin, slab, &mut empties);
                left -= 1;
            }
            drop(purging);
            self.retire(empties);
        }
        any
    }

    /// Purges the free pages of a slab without its bin's lock, and puts the slab back. If the slab
    /// is empty by then, adds it to `empties`. Returns whether pages were purged.
    fn purge_claimed(&self, bin: ClassBin<'_>, slab: Claimed, empties: &mut DetachedList) -> bool {
        let (bits, count) = bin.lock().take_due(&slab);
        let any = self.purge_free_pages(&slab, bin.class, &bits);
        if let Some(empty) = bin.lock().put_back(slab, count) {
            empties.push(empty);
        }
        any
    }

    /// Purges the pages of a claimed slab that lie within blocks whose bit in `bits` is set. These
    /// blocks stay free during the purge. Returns whether pages were purged.
    fn purge_free_pages(&self, slab: &Claimed, class: SizeClass, bits: &Bits) -> bool {
        let page = self.memory.pages.page_size();
        let (size, blocks) = (class.size(), usize::from(class.geometry().blocks));
        let free = |block: usize| bits[block / 64] >> (block % 64) & 1 == 1;
        let mut any = false;
        let mut index = 0;
        while index < blocks {
            if !free(index) {
                index += 1;
                continue;
            }
            let first = index;
            while index < blocks && free(index) {
                index += 1;
            }
            let start = (first * size).next_multiple_of(page);
            // The bytes behind the last block may be resident, too, if they lie in a huge page. So
            // a purge of the last block includes them.
            let end = if index == blocks {
                Units::of_slab(class).bytes()
            } else {
                index * size / page * page
            };
            if start < end
                && let Some(pages) = NonNull::new(slab.base().wrapping_add(start))
            {
                // SAFETY: these pages lie within free blocks of the slab, or behind its last block.
                // No thread takes blocks of a claimed slab.
                any |= unsafe { self.memory.purge(pages, end - start) };
            }
        }
        any
    }
}
