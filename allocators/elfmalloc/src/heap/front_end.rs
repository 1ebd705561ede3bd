//! What stands between a thread and the slabs. There are two front-ends over one back-end; which
//! one a library has is a type, and costs nothing at run time.

use core::fmt::Debug;

use heapdrome_pages::Pages;

use crate::heap::flush::flush;
use crate::heap::front::Front;
use crate::heap::heaps::Heaps;
use crate::heap::refill::refill;
use crate::heap::thread_heap::HeapRef;
use crate::size_class::SizeClass;
use crate::slabs::free_blocks::FreeBlock;

/// A way to keep free blocks at hand. `malloc` takes from the top of a magazine in either; they
/// differ in what they put there.
///
/// A magazine holds free blocks of its class and nothing else, whosever they are: the front-ends
/// may therefore even be mixed in one process.
pub trait FrontEnd: Clone + Copy + Debug + Default + Send + Sync + 'static {
    /// The allocator's name with this front-end.
    const NAME: &'static str;

    /// Whether huge pages are asked for where the settings say nothing.
    const HUGE_PAGES: bool;

    /// The fast path of `free`; false where that takes the slow path, and then nothing has
    /// happened.
    ///
    /// # Safety
    ///
    /// `block` is null or was allocated, and is used no more.
    unsafe fn free(front: &Front, block: *mut u8) -> bool;

    /// Takes a block after the magazine of its class was found empty; null where there is no
    /// memory.
    fn refill<P: Pages>(heaps: &Heaps<P>, heap: HeapRef, class: SizeClass) -> *mut u8;

    /// Takes a block back, for whatever reason the fast path did not.
    fn put<P: Pages>(heaps: &Heaps<P>, heap: HeapRef, block: FreeBlock);
}

/// Magazines for the blocks of all slabs: a thread keeps at hand what it frees.
#[derive(Clone, Copy, Debug, Default)]
pub struct Magazines;

impl FrontEnd for Magazines {
    const NAME: &'static str = "elfmalloc";
    const HUGE_PAGES: bool = true;

    #[inline(always)]
    unsafe fn free(front: &Front, block: *mut u8) -> bool {
        // SAFETY: the conditions are the same.
        unsafe { front.free(block) }
    }

    fn refill<P: Pages>(heaps: &Heaps<P>, heap: HeapRef, class: SizeClass) -> *mut u8 {
        refill(heaps, heap, class)
    }

    fn put<P: Pages>(heaps: &Heaps<P>, heap: HeapRef, block: FreeBlock) {
        if let Err(block) = heap.magazine(block.class()).push(block) {
            flush(heaps, heap, block);
        }
    }
}
