//! Front-ends: the layer between a thread and the slabs. Two front-ends share one back-end. Each
//! library chooses its front-end by a type parameter, at no cost at run time.

use core::fmt::Debug;

use heapdrome_pages::Pages;

use crate::heap::flush::flush;
use crate::heap::front::Front;
use crate::heap::heaps::Heaps;
use crate::heap::refill::refill;
use crate::heap::thread_heap::HeapRef;
use crate::size_class::SizeClass;
use crate::slabs::free_blocks::FreeBlock;

/// Policy for caching free blocks. In both front-ends `malloc` pops a block from a magazine; they
/// differ in the blocks that they put into magazines.
///
/// A magazine holds only free blocks of its class, from any slabs, so both front-ends may run in
/// one process.
pub trait FrontEnd: Clone + Copy + Debug + Default + Send + Sync + 'static {
    /// Name of the allocator with this front-end.
    const NAME: &'static str;

    /// Whether to request huge pages if the settings do not decide it.
    const HUGE_PAGES: bool;

    /// Runs the fast path of `free`. Returns false, without freeing the block, if the slow path is
    /// required.
    ///
    /// # Safety
    ///
    /// `block` is null or was allocated, and is no longer used.
    unsafe fn free(front: &Front, block: *mut u8) -> bool;

    /// Refills the empty magazine of `class` if it may hold blocks, and returns a block. Returns
    /// null if out of memory.
    fn refill<P: Pages>(heaps: &Heaps<P>, heap: HeapRef, class: SizeClass) -> *mut u8;

    /// Takes back a block that the fast path did not: caches it, or gives it back to its slab.
    fn put<P: Pages>(heaps: &Heaps<P>, heap: HeapRef, block: FreeBlock);
}

/// Front-end with magazines for the blocks of all slabs: a thread may cache every block that it
/// frees.
#[derive(Clone, Copy, Debug, Default)]
pub struct Magazines;

impl FrontEnd for Magazines {
    const NAME: &'static str = "elfmalloc";
    const HUGE_PAGES: bool = true;

    #[inline(always)]
    unsafe fn free(front: &Front, block: *mut u8) -> bool {
        // SAFETY: this function's contract is that of `Front::free`.
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
