//! Memory that goes back from depots and bins to the pool, and from there to the system: idle
//! memory by epochs, and before growth all memory that may serve instead.
//!
//! Memory that returns to the pool may end an epoch, and the end of an epoch returns memory to the
//! pool: so all of this is one file.

use heapdrome_pages::Pages;
use heapdrome_pages::atomic::Ordering::{Acquire, Relaxed, Release};
use heapdrome_pages::system::{address_space_limit, coarse_milliseconds};

use super::Heaps;
use crate::heap::depot::{Chunks, LEAST_KEPT};
use crate::heap::thread_heap::AnyHeap;
use crate::slabs::shards::bin_of;
use crate::units::amount::Units;

/// Divisor of live memory. Before memory grows, depots are emptied if together they hold more than
/// this part of it, and more than [`LEAST_KEPT`].
const WORTH_PART: usize = 16;
/// Divisor of live memory. Emptying for growth is repeated only once live memory has changed by
/// this part of it, and by a unit.
const GROWN_PART: usize = 64;

impl<P: Pages> Heaps<P> {
    /// If an epoch has passed, purges memory that was idle throughout it. An epoch is half the
    /// decay time, so that idle memory is purged within the decay time.
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
        // Memory that a pass gives back leads here again, and with a short decay time another epoch
        // has passed by then. Acquire: pairs with the release below, so that one pass follows the
        // other.
        if self.ticking.swap(true, Acquire) {
            return;
        }
        self.pass(epoch == 0);
        // Release: pairs with the acquire above.
        self.ticking.store(false, Release);
    }

    /// Purges memory that was idle throughout the epoch that ends; in the first pass there is none.
    fn pass(&self, first: bool) {
        let memory = self.memory();
        memory.as_idle(|| {
            self.shards.retire_idle_empties();
            self.empty_idle_depots();
        });
        let (excess, parts) = memory.pool.lock().end_epoch();
        if !first {
            let done = memory.purge_units(excess);
            memory.purge_any_units(parts.saturating_sub(done));
            self.shards.purge_idle_slabs();
            // If addresses are limited, other code needs those that are idle, for stacks or file
            // mappings.
            if address_space_limit().is_some() {
                memory.release_addresses(Units::NONE);
            }
        }
    }

    /// Gives back the chunks in depots that have been untouched since the last call.
    pub fn empty_idle_depots(&self) {
        for heap in self.all() {
            let chunks = heap.depot().lock().take_idle();
            if !chunks.is_empty() {
                self.release_chunks(heap, chunks);
                // Slabs that became empty by this have been idle as long.
                self.shards.retire_empties(heap.attachment().shard());
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

    fn release_chunks(&self, heap: AnyHeap, chunks: Chunks) {
        // The calling thread may use any shard, but the blocks belong to the heap.
        let shard = heap.attachment().shard();
        chunks.empty(&self.memory().structures, |blocks| {
            self.give(Some(bin_of(shard, blocks.class())), blocks);
        });
    }

    /// Gives back all blocks in depots, and all empty slabs.
    pub fn release_kept(&self) {
        self.empty_depots();
        self.retire_empties();
    }

    fn retire_empties(&self) {
        if self.shards.retire_all_empties() {
            self.tick();
        }
    }

    /// Gives empty slabs back before memory grows by a run of `units`, and the blocks in depots if
    /// these are many. Slabs that become empty by this may serve instead. Dirty units that are too
    /// scattered for the run do not prevent it: the pool always keeps some.
    pub fn before_growth(&self, units: Units) {
        let live = self.memory().live_units();
        // Relaxed: no other memory depends on this number.
        let emptied_at = Units::new(self.emptied_at.load(Relaxed));
        if live.abs_diff(emptied_at) < (live / GROWN_PART).max(Units::ONE)
            || self.memory().pool.lock().has_dirty_run(units)
        {
            return;
        }
        self.emptied_at.store(live.count(), Relaxed);
        self.retire_empties();
        if self.memory().pool.lock().has_dirty_run(units) {
            return;
        }
        let held: usize = self.all().map(|heap| heap.depot().lock().bytes()).sum();
        if held > (self.memory().live_bytes() / WORTH_PART).max(LEAST_KEPT) {
            self.release_kept();
        }
    }
}
