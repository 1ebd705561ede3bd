//! Refills: blocks enter a magazine from the thread's depot, or else from slabs.

use core::ptr::{NonNull, null_mut};

use heapdrome_pages::Pages;

use crate::heap::grow::grow;
use crate::heap::heaps::Heaps;
use crate::heap::magazine::Event;
use crate::heap::maintenance::look_around;
use crate::heap::thread_heap::HeapRef;
use crate::size_class::{FIRST_SHARED, SizeClass};
use crate::slabs::bin::ClassBin;

/// Refills the empty magazine of `class` if it may hold blocks, and returns a block. Returns null
/// if out of memory.
pub fn refill<P: Pages>(heaps: &Heaps<P>, heap: HeapRef, class: SizeClass) -> *mut u8 {
    if heap.front.is_due() {
        look_around(heaps, heap);
    }
    let magazine = heap.magazine(class);
    let wants = magazine.note(Event::Refill, class) || magazine.capacity() == 0;
    if wants && !magazine.wake() {
        grow(heaps, heap, class);
    }
    if magazine.capacity() == 0 {
        // The thread caches no blocks of this class, but must still check the clock.
        heap.front.count(1);
        return take_only(heaps, heap, heaps.bin(heap, class));
    }
    let (taken, block) = magazine.refill(batch(magazine.capacity()), |slots| {
        let from_depot = if class.number() < FIRST_SHARED {
            heap.depot().lock().pop(class, slots)
        } else {
            0
        };
        if from_depot != 0 {
            return from_depot;
        }
        heaps.take(heaps.bin(heap, class), slots)
    });
    if taken == 0 {
        return take_last(heaps, heap, heaps.bin(heap, class));
    }
    heap.front.count(taken);
    heap.outflow.take(taken);
    heap.note_length(class);
    block
}

/// Takes a block for a thread that caches no blocks of the class. Returns null if out of memory,
/// even after [`take_last`] has emptied caches.
pub(super) fn take_only<P: Pages>(heaps: &Heaps<P>, heap: HeapRef, bin: ClassBin<'_>) -> *mut u8 {
    let block = heaps.take_one(bin);
    if block.is_null() {
        return take_last(heaps, heap, bin);
    }
    heap.outflow.take(1);
    block
}

/// Takes a block after emptying this thread's magazines, all depots and the heaps of ended threads,
/// and giving empty slabs back to the pool. If necessary, takes it from another bin. Returns null
/// if out of memory.
#[cold]
pub(super) fn take_last<P: Pages>(heaps: &Heaps<P>, heap: HeapRef, bin: ClassBin<'_>) -> *mut u8 {
    heaps.empty_magazines(heap);
    heaps.release_kept();
    let mut block = heaps.take_one(bin);
    if block.is_null() {
        block = take_anywhere(heaps, bin.class());
    }
    heap.outflow.take(usize::from(!block.is_null()));
    block
}

/// Takes a block of `class` from any bin. Free blocks may lie in the bins of a shard that the
/// thread used while it ran on another processor.
#[cold]
fn take_anywhere<P: Pages>(heaps: &Heaps<P>, class: SizeClass) -> *mut u8 {
    let mut block = None;
    heaps.shards.each_bin(|bin| {
        if block.is_none() && bin.class() == class {
            block = bin.lock().take_one();
        }
    });
    block.map_or(null_mut(), NonNull::as_ptr)
}

/// Returns the number of blocks that a refill takes: half the capacity, rounded down to whole
/// bitmap words (64 blocks) if it is at least one word.
const fn batch(capacity: usize) -> usize {
    let half = capacity.div_ceil(2);
    if half < 64 { half } else { half & !63 }
}
