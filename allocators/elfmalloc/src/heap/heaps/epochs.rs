//! Returns memory from depots and bins to the pool, and from the pool to the system. Idle memory
//! returns once per epoch. Before memory grows, all cached memory that could be used instead
//! returns to the pool.
//!
//! Returning memory to the pool may end an epoch, and the end of an epoch returns memory to the
//! pool. So both are in this file.

use heapdrome_pages::Pages;
use heapdrome_pages::atomic::Ordering::{Acquire, Relaxed, Release};
use heapdrome_pages::system::{address_space_limit, coarse_milliseconds};

use super::Heaps;
use crate::heap::depot::{Chunks, LEAST_KEPT};
use crate::heap::thread_heap::AnyHeap;
use crate::slabs::shards::bin_of;
use crate::units::amount::Units;
use crate::units::pool::Pool;

/// Divisor of live memory. Before memory grows, the depots are emptied if together they hold more
/// than live memory divided by this number, and more than [`LEAST_KEPT`].
const WORTH_PART: usize = 16;
/// Divisor of live memory. Caches are emptied for growth again only after live memory has changed
/// by at least this fraction of itself, and by at least a unit.
const GROWN_PART: usize = 64;

impl<P: Pages> Heaps<P> {
    /// If an epoch has passed, purges the memory that was idle throughout. An epoch lasts half the
    /// decay time, so idle memory is purged within the decay time.
    pub fn tick(&self) {
        let now = coarse_milliseconds();
        let epoch = self.epoch.load(Relaxed);
        // Relaxed: only the number itself matters; one thread wins the exchange.
        if now.wrapping_sub(epoch) < self.decay() / 2
            || self
                .epoch
                .compare_exchange(epoch, now, Relaxed, Relaxed)
                .is_err()
        {
            return;
        }
        // The first call begins the first epoch, so there is no epoch to end.
        if epoch == 0 {
            return;
        }
        // When a pass gives memory back, this function is called again. With a short decay time,
        // another epoch may have passed by then. Acquire: pairs with the release below, so that
        // passes do not overlap.
        if self.ticking.swap(true, Acquire) {
            return;
        }
        self.pass();
        // Release: pairs with the acquire above.
        self.ticking.store(false, Release);
    }

    /// Purges memory that was idle throughout the ending epoch.
    #[cold]
    fn pass(&self) {
        let memory = self.memory();
        memory.as_idle(|| {
            self.shards.retire_idle_empties();
            self.empty_idle_depots();
        });
        let (excess, parts) = memory.pool.lock().end_epoch();
        let done = memory.purge_units(excess);
        memory.purge_any_units(parts.saturating_sub(done));
        self.shards.purge_idle_slabs();
        // If the address space is limited, other code needs the idle addresses of the arena, for
        // stacks or file mappings.
        if address_space_limit().is_some() {
            memory.release_addresses(Units::NONE);
        }
    }

    /// Gives back the blocks in depot chunks that have been idle since the last call.
    pub fn empty_idle_depots(&self) {
        for heap in self.all() {
            let chunks = heap.depot().lock().take_idle();
            if !chunks.is_empty() {
                self.release_chunks(heap, chunks);
                // Slabs that became empty by these blocks have been idle for the same time.
                self.shards.retire_empties(&heap.attachment().shard());
            }
        }
    }

    /// Gives all blocks in all depots back.
    pub fn empty_depots(&self) {
        self.all().for_each(|heap| self.empty_depot(heap));
    }

    /// Gives all blocks in a depot back.
    pub fn empty_depot(&self, heap: AnyHeap) {
        let chunks = heap.depot().lock().take_all();
        self.release_chunks(heap, chunks);
    }

    #[cold]
    fn release_chunks(&self, heap: AnyHeap, chunks: Chunks) {
        // Use the shard of the heap, not of the calling thread, because the blocks probably belong
        // to its bins.
        let shard = heap.attachment().shard();
        chunks.empty(&self.memory().structures, |blocks| {
            self.give(Some(bin_of(shard, blocks.class())), blocks);
        });
    }

    /// Gives back all blocks in depots, and all empty slabs.
    #[cold]
    pub fn release_kept(&self) {
        self.empty_depots();
        self.retire_empties();
    }

    fn retire_empties(&self) {
        if self.shards.retire_all_empties() {
            self.tick();
        }
    }

    /// Before memory grows by a run of `units`, gives cached memory back. The freed units may make
    /// the growth unnecessary. Skips this if the pool has a free dirty run that is long enough;
    /// scattered dirty units do not count, since the pool always has some.
    pub fn before_growth(&self, units: Units) {
        let live = self.memory().live_units();
        // Relaxed: no other memory depends on this number.
        let emptied_at = Units::new(self.emptied_at.load(Relaxed));
        let has_run = |pool: &Pool| pool.has_dirty_run(units);
        if live.abs_diff(emptied_at) < (live / GROWN_PART).max(Units::ONE)
            || has_run(&self.memory().pool.lock())
        {
            return;
        }
        self.emptied_at.store(live.count(), Relaxed);
        self.give_back_until(has_run);
    }

    /// Before a new mapping of `units` becomes resident, returns as much idle memory to the system:
    /// the block with that mapping cannot use it.
    pub fn before_mapping(&self, units: Units) {
        self.give_back_until(|pool| pool.excess() >= units);
        self.memory().purge_for(units, None);
    }

    /// Gives empty slabs back, and the blocks in depots if they are many, unless the pool has
    /// `enough`.
    fn give_back_until(&self, enough: impl Fn(&Pool) -> bool) {
        let done = || enough(&self.memory().pool.lock());
        if done() {
            return;
        }
        self.retire_empties();
        if done() {
            return;
        }
        let held: usize = self.all().map(|heap| heap.depot().lock().bytes()).sum();
        if held > (self.memory().live_bytes() / WORTH_PART).max(LEAST_KEPT) {
            self.release_kept();
        }
    }
}
