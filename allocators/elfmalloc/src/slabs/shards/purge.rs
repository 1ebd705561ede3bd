//! Free pages of slabs that go back to the system.

use core::ptr::NonNull;

use heapdrome_pages::Pages;

use super::Shards;
use crate::size_class::SizeClass;
use crate::slabs::bin::ClassBin;
use crate::slabs::partial::Slabs;
use crate::slabs::partial::held::DetachedList;
use crate::slabs::partial::purge::{Bits, Claimed};
use crate::units::amount::Units;

/// Maximum number of a bin's slabs that are out of their lists at once to be purged, and that an
/// epoch purges: each may cost several calls of the system.
const SLABS: usize = 256;

impl<P: Pages> Shards<P> {
    /// Purges the free pages of slabs that were idle throughout the epoch.
    pub fn purge_idle_slabs(&self) {
        self.each_bin(|bin| {
            // Another thread that holds the lock uses the slabs: next time.
            let Some(mut slabs) = bin.try_lock() else {
                return;
            };
            let due = slabs.mark_idle(SLABS);
            drop(slabs);
            self.purge_due(bin, due);
        });
    }

    /// Purges the pages of all partial slabs on which every block is free. True if any memory went.
    pub fn purge_all_slabs(&self) -> bool {
        let mut any = false;
        self.each_bin(|bin| {
            let due = Slabs::mark_free(&mut bin.lock());
            any |= self.purge_due(bin, due);
        });
        any
    }

    /// Purges the free pages of up to `most` slabs that are due. True if any memory went.
    fn purge_due(&self, bin: ClassBin<'_>, most: usize) -> bool {
        let mut any = false;
        let mut left = most;
        while left != 0 {
            // Held until all that were claimed are back: a fork waits for that, else the child
            // would lose them.
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
            let idle = bin.lock().idle;
            drop(purging);
            self.retire(empties);
            if idle {
                self.move_to_common(bin);
            }
        }
        any
    }

    /// Purges the free pages of a slab without its bin's lock, and puts it back; if it is empty by
    /// then, onto the list `empties`.
    fn purge_claimed(&self, bin: ClassBin<'_>, slab: Claimed, empties: &mut DetachedList) -> bool {
        let (bits, count) = bin.lock().take_due(&slab);
        let any = self.purge_free_pages(&slab, bin.class, &bits);
        if let Some(empty) = bin.lock().put_back(slab, count) {
            empties.push(empty);
        }
        any
    }

    /// Purges the pages of a claimed slab that lie within blocks whose bit in `bits` is set. Those
    /// are free, and stay so.
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
            // What is behind the last block is resident too where it is part of a huge page.
            let end = if index == blocks {
                Units::of_slab(class).bytes()
            } else {
                index * size / page * page
            };
            if start < end
                && let Some(pages) = NonNull::new(slab.base().wrapping_add(start))
            {
                // SAFETY: these pages of the slab hold nothing but free blocks, of which none is
                // taken while it is claimed.
                any |= unsafe { self.memory.purge(pages, end - start) };
            }
        }
        any
    }
}
