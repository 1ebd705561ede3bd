//! Front-ends: the layer between a thread and the slabs. There are two over one back-end. A library
//! chooses one by a type, which costs nothing at run time.

use core::fmt::Debug;

use heapdrome_pages::Pages;

use crate::heap::flush::flush;
use crate::heap::front::Front;
use crate::heap::heaps::Heaps;
use crate::heap::refill::refill;
use crate::heap::thread_heap::HeapRef;
use crate::size_class::SizeClass;
use crate::slabs::free_blocks::FreeBlock;

/// Policy for keeping free blocks at hand. `malloc` takes from the top of a magazine in either
/// front-end; they differ in what they put there.
///
/// A magazine holds free blocks of its class and nothing else, whichever slabs they come from. So
/// the front-ends may even be mixed in one process.
pub trait FrontEnd: Clone + Copy + Debug + Default + Send + Sync + 'static {
    /// Name of the allocator with this front-end.
    const NAME: &'static str;

    /// Whether huge pages are asked for if the settings do not decide.
    const HUGE_PAGES: bool;

    /// Runs the fast path of `free`. Returns false if the slow path is required; the block is then
    /// still to be freed.
    ///
    /// # Safety
    ///
    /// `block` is null or was allocated, and is no longer used.
    unsafe fn free(front: &Front, block: *mut u8) -> bool;

    /// Takes a block after the magazine of its class was found empty; null if there is no memory.
    fn refill<P: Pages>(heaps: &Heaps<P>, heap: HeapRef, class: SizeClass) -> *mut u8;

    /// Takes back a block that the fast path did not take, for whatever reason.
    fn put<P: Pages>(heaps: &Heaps<P>, heap: HeapRef, block: FreeBlock);
}

/// Front-end with magazines for the blocks of all slabs: a thread keeps what it frees.
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
