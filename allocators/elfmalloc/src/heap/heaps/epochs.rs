//! Epochs: once per epoch, idle memory returns from depots, heaps of ended threads and bins to the
//! pool, and from the pool to the system. Also empties the caches of one heap.
//!
//! Returning memory to the pool may end an epoch, and the end of an epoch returns memory to the
//! pool. So both are in this file.

use heapdrome_pages::Pages;
use heapdrome_pages::atomic::Ordering::{Acquire, Relaxed, Release};
use heapdrome_pages::system::{address_space_limit, coarse_milliseconds};

use super::Heaps;
use crate::heap::depot::Chunks;
use crate::heap::thread_heap::{AnyHeap, HeapRef};
use crate::size_class::SizeClass;
use crate::slabs::shards::bin_of;
use crate::units::amount::Units;

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
        // This flag keeps passes from overlapping. A pass that gives memory back calls this
        // function again, and with a short decay time, another epoch may have passed by then.
        // Acquire: pairs with the release below, so that this pass sees the effects of the last
        // one.
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
            self.empty_unclaimed(false);
        });
        let (excess, parts) = memory.pool.lock().end_epoch();
        let done = memory.purge_units(excess);
        memory.purge_any_units(parts.saturating_sub(done));
        self.shards.purge_idle_slabs();
        // If the address space is limited, other code may need the idle addresses of the arena, for
        // stacks or file mappings.
        if address_space_limit().is_some() {
            memory.release_addresses(Units::NONE);
        }
    }

    /// Gives the blocks of depot chunks that have been idle since the last call back to their
    /// slabs.
    pub fn empty_idle_depots(&self) {
        for heap in self.all() {
            let chunks = heap.depot().lock().take_idle();
            if !chunks.is_empty() {
                self.release_chunks(heap, chunks);
                // The slabs that these blocks leave empty have been idle for the same time, so they
                // go back to the pool at once.
                self.shards.retire_empties(&heap.attachment().shard());
            }
        }
    }

    /// Empties the heaps that ended threads left with blocks in an earlier epoch and that no thread
    /// has taken over since. If `all` is true, also empties those of this epoch. The remaining
    /// heaps then count as left in an earlier epoch.
    fn empty_unclaimed(&self, all: bool) {
        loop {
            let Some(heap) = self.list.lock().take_kept(all) else {
                break;
            };
            self.empty(heap);
            self.shards.retire_empties(&heap.attachment().shard());
            self.list.lock().put(heap, false);
        }
        self.list.lock().age_kept();
    }

    /// Gives all blocks of the heap of an ended or ending thread back to their slabs, and discards
    /// the slots of its magazines.
    #[cold]
    pub(super) fn empty(&self, heap: HeapRef) {
        self.empty_magazines(heap);
        for (class, magazine) in heap.magazines() {
            magazine.discard(&heap.metadata);
            heap.front.set_own(class, 0, 0);
        }
        self.empty_depot(heap.as_any());
        heap.budget.set(self.budget());
    }

    /// Gives all blocks in the heap's magazines and coalescer back to their slabs.
    pub fn empty_magazines(&self, heap: HeapRef) {
        for (class, _) in heap.magazines() {
            self.empty_magazine(heap, class);
        }
        self.empty_coalescer(heap);
    }

    /// Gives all blocks of a magazine back to their slabs, and updates the length that other
    /// threads read.
    pub(in crate::heap) fn empty_magazine(&self, heap: HeapRef, class: SizeClass) {
        let length = heap.magazine(class).length();
        heap.remove_oldest(class, length, |blocks| self.give_from(heap, blocks));
        heap.note_length(class);
    }

    /// Gives the blocks in the heap's coalescer back to their slabs.
    pub(in crate::heap) fn empty_coalescer(&self, heap: HeapRef) {
        if let Some(coalescer) = heap.coalescer() {
            coalescer.empty(|blocks| self.give_from(heap, blocks));
        }
    }

    /// Gives all blocks in all depots back to their slabs.
    pub fn empty_depots(&self) {
        self.all().for_each(|heap| self.empty_depot(heap));
    }

    /// Gives all blocks in a heap's depot back to their slabs.
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

    /// Gives all blocks in depots, and in the heaps of ended threads, back to their slabs. Then
    /// gives empty slabs back to the pool.
    #[cold]
    pub fn release_kept(&self) {
        self.empty_unclaimed(true);
        self.empty_depots();
        self.retire_empties();
    }

    pub(super) fn retire_empties(&self) {
        if self.shards.retire_all_empties() {
            self.tick();
        }
    }
}
