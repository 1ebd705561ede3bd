//! What the fast paths and the slow paths do together, over simulated pages.

use std::ptr::NonNull;

use heapdrome_elfmalloc::SizeClass;
use heapdrome_elfmalloc::heap::backend::Backend;
use heapdrome_elfmalloc::heap::front::ThreadHeap;
use heapdrome_elfmalloc::heap::front_end::FrontEnd;
use heapdrome_pages::Simulated;

/// A block; null where there is no memory. The heap is the calling thread's.
pub fn allocate<F: FrontEnd>(
    backend: &Backend<Simulated>,
    heap: NonNull<ThreadHeap>,
    class: SizeClass,
) -> *mut u8 {
    // SAFETY: the heap is this thread's; before a top lies a slot or null.
    unsafe {
        let front = &(*heap.as_ptr()).front;
        let top = front.top(class);
        let block = *top.sub(1);
        if block.is_null() {
            return F::refill(backend, heap, class);
        }
        front.set_top(class, top.sub(1));
        block
    }
}
