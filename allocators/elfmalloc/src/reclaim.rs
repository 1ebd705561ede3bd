//! Memory that goes back to the system: by and by what lies idle, at once what `malloc_trim` asks for.

use core::ptr::NonNull;
use heapdrome_pages::atomic::Ordering::Relaxed;

use heapdrome_pages::system::coarse_milliseconds;
use heapdrome_pages::{Pages, Purge};

use crate::backend::Backend;
use crate::bin::Bin;
use crate::heap::ThreadHeap;
use crate::pool::purge;
use crate::size_class::{CLASSES, SizeClass, UNIT};
use crate::slab::Slab;

/// Units that are kept whatever happens: 1 MiB.
const KEPT: usize = (1 << 20) / UNIT;
/// Units that are purged by one call of the system.
const PIECE: usize = 64;

impl<P: Pages> Backend<P> {
    /// Purges, if an epoch has passed, units that were idle throughout it. Half the decay time is an
    /// epoch, so that what becomes idle is purged within the decay time.
    pub fn tick(&self) {
        let now = coarse_milliseconds();
        let epoch = self.epoch.load(Relaxed);
        // Relaxed: only the number itself matters; one thread wins it.
        if now.wrapping_sub(epoch) < self.decay.load(Relaxed) / 2
            || self
                .epoch
                .compare_exchange(epoch, now, Relaxed, Relaxed)
                .is_err()
        {
            return;
        }
        let excess = {
            let mut pool = self.pool.lock();
            let kept = KEPT.max(pool.live / 32);
            let excess = pool.dirty_low.saturating_sub(kept);
            pool.dirty_low = pool.dirty;
            excess
        };
        if epoch != 0 {
            self.purge_units(excess);
            self.empty_idle_depots();
        }
    }

    /// Purges up to `most` dirty units. Returns how many.
    pub fn purge_units(&self, most: usize) -> usize {
        let mut done = 0;
        while done < most {
            let taken = self.pool.lock().take_dirty(PIECE.min(most - done));
            let Some((base, count)) = taken else { break };
            // SAFETY: the units are out of the pool, and nobody needs their contents.
            let clean = unsafe { purge(&self.pages, base, count) };
            self.pool.lock().put_purged(base, count, clean);
            if !clean {
                break;
            }
            self.count_purge(count * UNIT);
            done += count;
        }
        done
    }

    fn count_purge(&self, bytes: usize) {
        // Relaxed: numbers that stand alone.
        self.purges.fetch_add(1, Relaxed);
        self.purged.fetch_add(bytes as u64, Relaxed);
    }

    /// Gives back all that can be given back, but for `keep` bytes of free units. True if any went.
    ///
    /// # Safety
    ///
    /// `heap` is the calling thread's, if it has one.
    pub unsafe fn trim(&self, heap: Option<NonNull<ThreadHeap>>, keep: usize) -> bool {
        if let Some(heap) = heap {
            // SAFETY: the caller's promise.
            unsafe { self.empty_magazines(heap, false) };
        }
        self.empty_depots();
        let excess = self.pool.lock().dirty.saturating_sub(keep / UNIT);
        let mut any = self.purge_units(excess) != 0;
        for number in 1..=CLASSES {
            any |= self.trim_bin(&self.bins[number], SizeClass::from_number(number as u8));
        }
        for heap in self.all_heaps() {
            // SAFETY: heaps live for ever, and bins may be used by any thread.
            for (number, bin) in unsafe { &(*heap.as_ptr()).bins }.iter().enumerate().skip(1) {
                any |= self.trim_bin(bin, SizeClass::from_number(number as u8));
            }
        }
        any
    }

    /// Purges the pages of partial slabs on which every block is free.
    fn trim_bin(&self, bin: &Bin, class: SizeClass) -> bool {
        let mut any = false;
        let slabs = bin.lock();
        slabs.each_partial(|slab| {
            // SAFETY: the bin's lock is held.
            any |= unsafe { self.trim_slab(slab, class) };
        });
        any
    }

    /// # Safety
    ///
    /// The lock of the slab's bin is held.
    unsafe fn trim_slab(&self, slab: *mut Slab, class: SizeClass) -> bool {
        let page = self.pages.page_size();
        let (size, blocks) = (class.size(), usize::from(class.geometry().blocks));
        let mut any = false;
        let mut index = 0;
        while index < blocks {
            // SAFETY: the bitmap has a bit for every block, and the lock makes it the caller's.
            let free = |block: usize| unsafe { Slab::is_free(slab, block) };
            if !free(index) {
                index += 1;
                continue;
            }
            let first = index;
            while index < blocks && free(index) {
                index += 1;
            }
            let start = (first * size).next_multiple_of(page);
            let end = index * size / page * page;
            if start < end {
                // SAFETY: these pages hold nothing but free blocks.
                let done = unsafe {
                    let start_at = NonNull::new_unchecked((*slab).base.add(start));
                    self.pages.purge(start_at, end - start, Purge::Now)
                };
                if done {
                    self.count_purge(end - start);
                }
                any |= done;
            }
        }
        any
    }
}
