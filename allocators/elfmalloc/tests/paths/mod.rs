//! Allocation from a magazine or by a refill, and free through the front-end's
//! [`put`](FrontEnd::put).

use std::ptr::NonNull;

use heapdrome_elfmalloc::SizeClass;
use heapdrome_elfmalloc::heap::front_end::FrontEnd;
use heapdrome_elfmalloc::heap::heaps::Heaps;
use heapdrome_elfmalloc::heap::thread_heap::HeapRef;
use heapdrome_elfmalloc::slabs::free_blocks::FreeBlock;
use heapdrome_pages::Pages;

/// Allocates a block. Returns null if out of memory.
pub fn allocate<F: FrontEnd>(
    heaps: &Heaps<impl Pages>,
    heap: HeapRef,
    class: SizeClass,
) -> *mut u8 {
    let block = heap.magazine(class).pop();
    if block.is_null() {
        return F::refill(heaps, heap, class);
    }
    block
}

/// Frees a block that the test allocated.
pub fn put<F: FrontEnd>(
    heaps: &Heaps<impl Pages>,
    heap: HeapRef,
    class: SizeClass,
    block: *mut u8,
) {
    let block = NonNull::new(block).expect("a block");
    // SAFETY: the test passes an allocated block of `class`, and no longer uses it.
    F::put(heaps, heap, unsafe { FreeBlock::new(class, block) });
}
