//! Flushes: blocks that leave a magazine go to the thread's depot. They go to their slabs if the
//! depot has no room for them, or if the magazine has not been refilled lately.

use heapdrome_pages::Pages;

use crate::heap::depot::{Depot, LEAST_KEPT};
use crate::heap::grow::grow;
use crate::heap::heaps::Heaps;
use crate::heap::magazine::Event;
use crate::heap::thread_heap::HeapRef;
use crate::size_class::{FIRST_SHARED, SizeClass};
use crate::slabs::free_blocks::{FreeBlock, FreeBlocks};

/// Divisor that limits the depots. All depots together, with their chunks, may take at most live
/// memory divided by this number, or [`LEAST_KEPT`] bytes each if that is more.
const DEPOTS_PART: usize = 4;

/// Puts a block into a magazine that is full, has no slots, or rests until its next refill.
/// Enlarges or flushes the magazine first. If the magazine still has no slots, gives the block back
/// to its slab.
pub fn flush<P: Pages>(heaps: &Heaps<P>, heap: HeapRef, block: FreeBlock) {
    let class = block.class();
    let magazine = heap.magazine(class);
    let again = magazine.was(Event::Flush);
    let wants = magazine.note(Event::Flush, class);
    if !((wants || magazine.capacity() == 0) && grow(heaps, heap, class)) {
        if magazine.capacity() == 0 {
            heap.front.count(1);
            heap.gave(1);
            heaps.give_one(Some(heap), block);
            return;
        }
        // After two flushes in a row, the thread probably only frees: flush everything, since it
        // will hardly allocate these blocks again.
        let oldest = magazine.capacity().div_ceil(if again { 1 } else { 2 });
        if magazine.was_refilled() {
            heap.remove_oldest(class, oldest, |blocks| spill(heaps, heap, blocks));
        } else {
            release_oldest(heaps, heap, class, oldest);
        }
    }
    if let Err(block) = magazine.push(block) {
        heaps.give_one(Some(heap), block);
    }
}

/// Moves blocks that leave a magazine to the depot, and blocks that the depot cannot hold to their
/// slabs. The last of `blocks` is the most recently freed one.
fn spill<P: Pages>(heaps: &Heaps<P>, heap: HeapRef, mut blocks: FreeBlocks<'_>) {
    let mut kept = 0;
    if blocks.class().number() < FIRST_SHARED {
        let mut depot = heap.depot().lock();
        if has_room(heaps, &depot, &blocks) {
            let memory = heaps.memory();
            kept = depot.push(&mut blocks, &memory.structures, &memory.pages);
        }
    }
    if kept != blocks.count() {
        heaps.give_from(heap, blocks.without_first(kept));
    }
}

/// Returns whether a depot has room for these blocks.
fn has_room<P: Pages>(heaps: &Heaps<P>, depot: &Depot, blocks: &FreeBlocks<'_>) -> bool {
    let live = heaps.memory().live_bytes() / heaps.shards.threads().max(1);
    let more = blocks.count() * blocks.class().size();
    depot.bytes() + depot.chunk_bytes() + more <= (live / DEPOTS_PART).max(LEAST_KEPT)
}

/// Gives the `count` oldest blocks of a magazine back to their slabs. The magazine has at least
/// `count` blocks.
pub(super) fn release_oldest<P: Pages>(
    heaps: &Heaps<P>,
    heap: HeapRef,
    class: SizeClass,
    count: usize,
) {
    heap.remove_oldest(class, count, |blocks| heaps.give_from(heap, blocks));
}
