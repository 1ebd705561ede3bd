//! What the fast paths and the slow paths do together, over simulated pages.

use heapdrome_elfmalloc::SizeClass;
use heapdrome_elfmalloc::heap::front_end::FrontEnd;
use heapdrome_elfmalloc::heap::heaps::Heaps;
use heapdrome_elfmalloc::heap::thread_heap::HeapRef;
use heapdrome_elfmalloc::slabs::free_blocks::FreeBlocks;
use heapdrome_pages::Simulated;

/// A block; null where there is no memory.
pub fn allocate<F: FrontEnd>(heaps: &Heaps<Simulated>, heap: HeapRef, class: SizeClass) -> *mut u8 {
    let block = heap.magazine(class).pop();
    if block.is_null() {
        return F::refill(heaps, heap, class);
    }
    block
}

/// Takes a block back that the test allocated.
pub fn put<F: FrontEnd>(heaps: &Heaps<Simulated>, heap: HeapRef, class: SizeClass, block: *mut u8) {
    // SAFETY: the block is the test's own, and given up.
    unsafe { F::put(heaps, heap, FreeBlocks::new(class, &mut [block])) };
}
