//! Memory that goes back to the system: by and by what lies idle, at once what `malloc_trim` asks for.

use core::mem::take;
use core::ptr::{NonNull, null_mut};
use heapdrome_pages::atomic::Ordering::{Acquire, Relaxed, Release};

use heapdrome_pages::Pages;
use heapdrome_pages::system::{address_space_limit, coarse_milliseconds};

use crate::heap::backend::Backend;
use crate::heap::front::ThreadHeap;
use crate::settings::Settings;
use crate::size_class::{SizeClass, UNIT};
use crate::slabs::bin::{Bin, Slabs};
use crate::slabs::slab::Slab;
use crate::units::pool::{Pool, Run};

/// Units that are kept whatever happens: 256 KiB.
const KEPT: usize = (256 << 10) / UNIT;
/// Where more units are in use, a part of those beyond is kept: 32 MiB. What a smaller heap would keep is soon faulted in.
const SMALL_HEAP: usize = (32 << 20) / UNIT;
/// Where no more units than these are put to use in an epoch, 16 MiB, memory is little used,
const FEW: usize = (16 << 20) / UNIT;
/// and as many as these count as idle that were not, 4 MiB: those that come and go are soon faulted in.
const GRACE: usize = (4 << 20) / UNIT;
/// Units that are kept when memory grows: 128 KiB.
const KEPT_AT_GROWTH: usize = (128 << 10) / UNIT;
/// Units that are purged by one call of the system.
const PIECE: usize = 64;

/// Partial slabs whose pages are purged in one epoch, at most: each may cost several calls.
const SLABS: usize = 2048;
/// Slabs that are out of their bin at once while their pages are purged, at most.
const CLAIMED: usize = 64;

impl Pool {
    /// Begins another epoch. Returns how many units are to be purged because they were idle throughout the one that ends, or nearly
    /// so if `grace` is granted and few were put to use; and how many of them may be parts of huge pages.
    pub fn end_epoch(&mut self, grace: bool) -> (usize, usize) {
        let few = take(&mut self.taken) <= FEW;
        let idle = self.dirty_low;
        let grace = if grace && few { GRACE } else { 0 }.min(self.dirty - idle);
        self.dirty_low = self.dirty;
        let beyond = self.live.saturating_sub(SMALL_HEAP);
        let kept = KEPT.max(beyond / 32);
        let parts = KEPT.max(beyond / 16);
        (
            (idle + grace).saturating_sub(kept),
            idle.saturating_sub(parts),
        )
    }
}

impl<P: Pages> Backend<P> {
    /// Purges, if an epoch has passed, what was idle throughout it. Half the decay time is an epoch, so
    /// that what becomes idle is purged within the decay time.
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
        // What is given back on the way comes here again, and with a short decay time an epoch has passed
        // by then. Acquire: pairs with the release below, so that one pass follows the other.
        if self.ticking.swap(true, Acquire) {
            return;
        }
        self.pass(epoch == 0);
        // Release: pairs with the acquire above.
        self.ticking.store(false, Release);
    }

    /// Purges what was idle throughout the epoch that ends; in the first pass nothing was.
    fn pass(&self, first: bool) {
        self.as_idle(|| {
            self.retire_all_empties(Slabs::take_idle_empties);
            self.empty_idle_depots();
        });
        // Where epochs are short, nearly every program uses few units in one.
        let decays_slowly = self.decay.load(Relaxed) >= Settings::DEFAULT.decay;
        let (excess, parts) = self.pool.lock().end_epoch(decays_slowly);
        if !first {
            let done = self.purge_units(excess);
            self.purge_any_units(parts.saturating_sub(done));
            self.purge_idle_slabs();
            // Where addresses are limited, others need those that are idle: stacks, mappings of files.
            if address_space_limit().is_some() {
                self.release_addresses(0);
            }
        }
    }

    /// Gives addresses of purged units back to the system, `kept` units aside. True if any went.
    fn release_addresses(&self, kept: usize) -> bool {
        let mut pool = self.pool.lock();
        pool.shrink(&self.pages, &self.directory, kept)
    }

    /// Does something that gives blocks back which have been idle for long: units that become free by it
    /// count as idle from the epoch's beginning on.
    pub(crate) fn as_idle(&self, action: impl FnOnce()) {
        let before = self.pool.lock().dirty;
        action();
        let mut pool = self.pool.lock();
        let more = pool.dirty.saturating_sub(before);
        pool.dirty_low = (pool.dirty_low + more).min(pool.dirty);
    }

    /// Purges up to `most` dirty units, but no parts of huge pages. Returns how many.
    pub fn purge_units(&self, most: usize) -> usize {
        self.purge_by(most, Pool::take_dirty)
    }

    /// The same, parts of huge pages too.
    pub fn purge_any_units(&self, most: usize) -> usize {
        self.purge_by(most, |pool, most| pool.take_any_dirty(most, &(0..0)))
    }

    /// To be called when so many units become resident that were not, those of `run` if it is one: purges as many
    /// idle ones, which were too scattered to serve, but for some.
    pub(crate) fn make_way(&self, units: usize, run: Option<Run>) {
        if units != 0 {
            self.before_growth(units);
            self.purge_for(units, run);
        }
    }

    /// The same without looking first whether what threads keep would serve.
    pub(crate) fn purge_for(&self, units: usize, run: Option<Run>) {
        if units == 0 {
            return;
        }
        let (spared, excess) = {
            let pool = self.pool.lock();
            // What lies in a huge page of the run counts as dirty since it is about to become resident: it is not yet.
            let (spared, own) = run.map_or((0..0, 0), |run| pool.huge_pages_of(&run));
            let kept = KEPT_AT_GROWTH.max(pool.live / 8);
            (spared, pool.dirty.saturating_sub(own + kept))
        };
        self.purge_by(units.min(excess), |pool, most| {
            pool.take_any_dirty(most, &spared)
        });
    }

    fn purge_by(
        &self,
        most: usize,
        take: impl Fn(&mut Pool, usize) -> Option<(NonNull<u8>, usize)>,
    ) -> usize {
        let mut done = 0;
        while done < most {
            let taken = take(&mut self.pool.lock(), PIECE.min(most - done));
            let Some((base, count)) = taken else { break };
            // SAFETY: the units are out of the pool, and nobody needs their contents; they are whole pages.
            let clean = unsafe { self.pages.purge(base, count * UNIT) };
            self.pool.lock().put_purged(base, count, clean);
            if !clean {
                break;
            }
            self.count_purge(count * UNIT);
            done += count;
        }
        done
    }

    /// Purges the free pages of slabs that were idle throughout the epoch.
    fn purge_idle_slabs(&self) {
        let mut left = SLABS;
        self.each_bin_with_class(|bin, class| {
            // Whoever holds the lock uses the slabs: next time.
            let Some(slabs) = bin.try_lock() else { return };
            let mut due = 0;
            slabs.each_partial(|slab| {
                // SAFETY: the bin's lock is held.
                if due != left && unsafe { Slab::mark_idle(slab, class) } {
                    due += 1;
                }
            });
            drop(slabs);
            left -= due;
            self.purge_due(bin, class, due);
        });
    }

    /// Purges the free pages of up to `most` slabs that are due. True if any memory went.
    fn purge_due(&self, bin: &Bin, class: SizeClass, most: usize) -> bool {
        let mut any = false;
        let mut left = most;
        while left != 0 {
            // Held until all that were claimed are back: a fork waits for that, else the child would lose
            // them.
            let purging = self.purging.lock();
            let mut claimed = bin.lock().claim(left.min(CLAIMED));
            if claimed.is_null() {
                break;
            }
            let mut empties = null_mut();
            while !claimed.is_null() {
                // SAFETY: the slab is claimed, and so its links are this function's.
                unsafe {
                    let slab = claimed;
                    claimed = (*slab).next;
                    any |= self.purge_claimed(bin, class, slab, &mut empties);
                }
                left -= 1;
            }
            let idle = bin.lock().idle;
            drop(purging);
            // SAFETY: the empty slabs left their bin, and are this thread's.
            unsafe { self.retire(empties) };
            if idle {
                // SAFETY: whoever calls passes a bin of the class.
                unsafe { self.evacuate(bin, class) };
            }
        }
        any
    }

    /// Purges the free pages of a slab without its bin's lock, and puts it back; if it is empty by then, onto
    /// the list `empties`.
    ///
    /// # Safety
    ///
    /// The slab was claimed from `bin`, one for `class`.
    unsafe fn purge_claimed(
        &self,
        bin: &Bin,
        class: SizeClass,
        slab: *mut Slab,
        empties: &mut *mut Slab,
    ) -> bool {
        // SAFETY: the slab is the caller's, and its bin's lock makes the descriptor so. What is free of a claimed slab
        // stays so.
        unsafe {
            let (bits, count) = {
                let _slabs = bin.lock();
                Slab::take_due(slab)
            };
            let any = self.purge_free_pages((*slab).base, class, &bits);
            if bin.lock().put_back(slab, count) {
                (*slab).next = *empties;
                *empties = slab;
            }
            any
        }
    }

    /// Calls `visit` for every bin that may have slabs.
    pub(crate) fn each_bin_with_class(&self, mut visit: impl FnMut(&Bin, SizeClass)) {
        let mut visit_all = |bins: &[Bin]| {
            for (number, bin) in bins.iter().enumerate().skip(1) {
                visit(bin, SizeClass::from_number(number as u8));
            }
        };
        visit_all(&self.bins);
        for host in self.all_hosts() {
            // SAFETY: heaps live for ever, and bins may be used by any thread.
            visit_all(unsafe { &(*host.as_ptr()).bins });
        }
    }

    fn count_purge(&self, bytes: usize) {
        // Relaxed: numbers that stand alone.
        self.purges.fetch_add(1, Relaxed);
        self.purged.fetch_add(bytes as u64, Relaxed);
    }

    /// Gives back all that can be given back, except `keep` bytes of free units. True if any went.
    ///
    /// # Safety
    ///
    /// `heap` is the calling thread's, if it has one.
    pub unsafe fn trim(&self, heap: Option<NonNull<ThreadHeap>>, keep: usize) -> bool {
        if let Some(heap) = heap {
            // SAFETY: the caller's promise.
            unsafe { self.empty_magazines(heap, false) };
        }
        self.release_kept();
        let excess = self.pool.lock().dirty.saturating_sub(keep / UNIT);
        let mut any = self.purge_any_units(excess) != 0;
        self.each_bin_with_class(|bin, class| any |= self.trim_bin(bin, class));
        any | self.release_addresses(keep / UNIT)
    }

    /// Purges the pages of partial slabs on which every block is free.
    fn trim_bin(&self, bin: &Bin, class: SizeClass) -> bool {
        let mut due = 0;
        bin.lock().each_partial(|slab| {
            // SAFETY: the bin's lock is held.
            due += usize::from(unsafe { Slab::mark_free(slab) });
        });
        self.purge_due(bin, class, due)
    }

    /// Purges the pages of a slab that lie within blocks whose bit in `bits` is set.
    ///
    /// # Safety
    ///
    /// The slab is one of `class` that begins at `base`, and those blocks stay free meanwhile.
    unsafe fn purge_free_pages(&self, base: *mut u8, class: SizeClass, bits: &[u64]) -> bool {
        let page = self.pages.page_size();
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
                usize::from(class.geometry().units) * UNIT
            } else {
                index * size / page * page
            };
            if start < end {
                // SAFETY: these pages hold nothing but free blocks.
                let done = unsafe {
                    let start_at = NonNull::new_unchecked(base.add(start));
                    self.pages.purge(start_at, end - start)
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
