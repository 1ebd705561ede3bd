//! What stands between a thread and the slabs. There are two front-ends over one back-end; which one a
//! library has is a type, and costs nothing at run time.

use core::fmt::Debug;
use core::ptr::NonNull;

use heapdrome_pages::Pages;

use crate::heap::backend::Backend;
use crate::heap::front::{FULL, Front, ThreadHeap};
use crate::size_class::SizeClass;

/// A way to keep free blocks at hand. `malloc` takes from the top of a magazine in either; they differ
/// in what they put there.
///
/// A magazine holds free blocks of its class and nothing else, whosever they are: the front-ends may
/// therefore even be mixed in one process.
pub trait FrontEnd: Clone + Copy + Debug + Default + Send + Sync + 'static {
    /// The allocator's name with this front-end.
    const NAME: &'static str;

    /// Whether huge pages are asked for where the settings say nothing.
    const HUGE_PAGES: bool;

    /// The fast path of `free`; false where that takes the slow path, and then nothing has happened.
    ///
    /// # Safety
    ///
    /// `block` is null or was allocated, and is used no more.
    unsafe fn free(front: &Front, block: *mut u8) -> bool;

    /// A block after the magazine of its class was found empty; null where there is no memory.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's, and its magazine of `class` is empty.
    unsafe fn refill<P: Pages>(
        backend: &Backend<P>,
        heap: NonNull<ThreadHeap>,
        class: SizeClass,
    ) -> *mut u8;

    /// Takes a block back, whatever it is that kept the fast path from it.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's, and the block one of `class` that nobody uses.
    unsafe fn put<P: Pages>(
        backend: &Backend<P>,
        heap: NonNull<ThreadHeap>,
        class: SizeClass,
        block: *mut u8,
    );
}

/// Magazines for the blocks of all slabs: whoever frees a block keeps it at hand.
#[derive(Clone, Copy, Debug, Default)]
pub struct Magazines;

impl FrontEnd for Magazines {
    const NAME: &'static str = "elfmalloc";
    const HUGE_PAGES: bool = true;

    #[inline(always)]
    unsafe fn free(front: &Front, block: *mut u8) -> bool {
        // SAFETY: the caller's promise.
        unsafe { front.free(block) }
    }

    unsafe fn refill<P: Pages>(
        backend: &Backend<P>,
        heap: NonNull<ThreadHeap>,
        class: SizeClass,
    ) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { backend.refill(heap, class) }
    }

    unsafe fn put<P: Pages>(
        backend: &Backend<P>,
        heap: NonNull<ThreadHeap>,
        class: SizeClass,
        block: *mut u8,
    ) {
        // SAFETY: the heap is this thread's.
        unsafe {
            let front = &(*heap.as_ptr()).front;
            let top = front.top(class);
            if *top == FULL {
                backend.flush(heap, class, block);
            } else {
                *top = block;
                front.set_top(class, top.add(1));
            }
        }
    }
}
