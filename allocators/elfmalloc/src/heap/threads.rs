//! Operations on a thread's heap as a whole: detaching, statistics and `malloc_trim`.

use core::ptr::NonNull;

use heapdrome_pages::Pages;

use crate::heap::heaps::Heaps;
use crate::heap::thread_heap::HeapRef;
use crate::slabs::free_blocks::FreeBlock;
use crate::units::amount::Units;

/// Detaches the heap of an ending thread. Its magazines keep their blocks for the next thread if
/// they are small. If the thread's shard has no other thread, other threads can adopt the shard's
/// slabs.
///
/// # Safety
///
/// The heap belongs to the calling thread or to an ended thread, and its thread no longer uses it.
pub unsafe fn detach<P: Pages>(heaps: &Heaps<P>, heap: HeapRef) {
    empty_quarantine(heaps, heap);
    heaps.leave(heap);
}

/// Gives the blocks in a thread's quarantine back to their slabs.
#[cold]
fn empty_quarantine<P: Pages>(heaps: &Heaps<P>, heap: HeapRef) {
    let Some(mut quarantine) = NonNull::new(heap.quarantine.get()) else {
        return;
    };
    // SAFETY: the quarantine belongs to the heap, and thus to this thread. The blocks that it
    // passes on lie in slabs and are on no list, and the program no longer uses them.
    unsafe {
        quarantine.as_mut().empty(|block| {
            if let Some(slab) = heaps.shards.slab_of(block.addr())
                && let Some(block) = NonNull::new(block)
            {
                heaps.give_one(Some(heap), FreeBlock::new(slab.class(), block));
            }
        });
    }
}

/// Records the number of blocks in each of the thread's magazines, for statistics. Gives the blocks
/// in its coalescer back to their slabs.
#[cold]
pub fn note_cached<P: Pages>(heaps: &Heaps<P>, heap: HeapRef) {
    heaps.empty_coalescer(heap);
    heap.note_lengths();
}

/// Returns as much memory as possible to the system, except `keep` bytes of free units. `heap` is
/// the heap of the calling thread, if it has one. Returns whether the system got any memory.
#[cold]
pub fn trim<P: Pages>(heaps: &Heaps<P>, heap: Option<HeapRef>, keep: usize) -> bool {
    if let Some(heap) = heap {
        // Every cached block keeps its unit in use, so that the arena cannot shrink below that
        // unit.
        empty_quarantine(heaps, heap);
        heaps.empty_magazines(heap);
    }
    heaps.release_kept();
    let (memory, keep) = (heaps.memory(), Units::filled_by(keep));
    let excess = memory.pool.lock().dirty.saturating_sub(keep);
    let mut any = memory.purge_any_units(excess) != Units::NONE;
    any |= heaps.shards.purge_all_slabs();
    any | memory.release_addresses(keep)
}
