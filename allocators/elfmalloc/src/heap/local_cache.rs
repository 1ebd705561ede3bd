//! The thread-local cache: a front-end that keeps less at hand.
//!
//! A magazine holds only blocks of the slab that it was last refilled from, the thread's own for that
//! class; everything else that the thread frees goes back to its slab by way of a small coalescer.
//! Blocks above 4 KiB are not kept at all.

use core::ptr::NonNull;

use heapdrome_pages::Pages;

use crate::heap::backend::Backend;
use crate::heap::coalescer::Coalescer;
use crate::heap::front::{FULL, Front, ThreadHeap};
use crate::heap::front_end::FrontEnd;
use crate::heap::magazine::Event;
use crate::size_class::{FIRST_SHARED, SizeClass, UNIT_SHIFT};

/// The most bytes of blocks in a magazine.
const BYTES: usize = 4 << 10;
/// The most blocks in a magazine.
const MOST: usize = 30;

/// Keeps blocks of the thread's own active slabs, and only those.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalCache;

impl FrontEnd for LocalCache {
    const NAME: &'static str = "elfmalloc-l";
    const HUGE_PAGES: bool = false;

    #[inline(always)]
    unsafe fn free(front: &Front, block: *mut u8) -> bool {
        // SAFETY: the caller's promise.
        unsafe { front.free_own(block) }
    }

    unsafe fn refill<P: Pages>(
        backend: &Backend<P>,
        heap: NonNull<ThreadHeap>,
        class: SizeClass,
    ) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { backend.refill_own(heap, class) }
    }

    unsafe fn put<P: Pages>(
        backend: &Backend<P>,
        heap: NonNull<ThreadHeap>,
        class: SizeClass,
        block: *mut u8,
    ) {
        // SAFETY: the caller's promise.
        unsafe { backend.put_own(heap, class, block) }
    }
}

/// How many blocks a magazine may hold.
fn capacity_of(class: SizeClass) -> usize {
    (BYTES / class.size()).clamp(2, MOST)
}

impl<P: Pages> Backend<P> {
    /// A block of `class` after its magazine was found empty, which is refilled from one slab; null
    /// where there is no memory.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's, and its magazine of `class` is empty.
    unsafe fn refill_own(&self, heap: NonNull<ThreadHeap>, class: SizeClass) -> *mut u8 {
        // SAFETY: the heap is this thread's; the slots have room for `want` blocks, and those that
        // were taken lie in a slab.
        unsafe {
            let place = heap.as_ptr();
            let bin = self.bin(heap, class);
            if class.number() >= FIRST_SHARED || !self.open(heap, class) {
                return self.take_only(heap, bin, class);
            }
            let magazine = &mut (*place).magazines[class.number()];
            magazine.note(Event::Refill, class);
            let want = usize::from(magazine.capacity).div_ceil(2);
            let taken = self.take_from_one(bin, class, magazine.slots, want);
            if taken == 0 {
                return self.take_last(heap, bin, class);
            }
            (*place).outflow.take(taken);
            let last = magazine.slots.add(taken - 1);
            let slab = self.slab_of((*last).addr());
            let front = &(*place).front;
            front.set_own(
                class,
                (*slab).base.addr(),
                ((*slab).units as usize) << UNIT_SHIFT,
            );
            front.set_top(class, last);
            self.note_length(heap, class);
            *last
        }
    }

    /// Sees to it that a magazine has all its slots; false where there is no memory.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's.
    unsafe fn open(&self, heap: NonNull<ThreadHeap>, class: SizeClass) -> bool {
        // SAFETY: the heap is this thread's; the magazine holds no more than it has slots.
        unsafe {
            let place = heap.as_ptr();
            let magazine = &mut (*place).magazines[class.number()];
            let capacity = usize::from(magazine.capacity);
            let wanted = capacity_of(class);
            let (front, own) = (&(*place).front, &mut (*place).metadata);
            if capacity < wanted
                && magazine.resize(front, class, wanted, own, &self.metadata, &self.pages)
            {
                let cost = (wanted - capacity) * class.size();
                (*place).budget = (*place).budget.saturating_sub(cost);
            }
            magazine.capacity != 0
        }
    }

    /// Takes a block back that the fast path did not.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's, and the block one of `class` that nobody uses.
    unsafe fn put_own(&self, heap: NonNull<ThreadHeap>, class: SizeClass, block: *mut u8) {
        // SAFETY: the heap is this thread's, and what is released is replaced by what lay above it.
        unsafe {
            let place = heap.as_ptr();
            let front = &(*place).front;
            let magazine = &mut (*place).magazines[class.number()];
            front.count(1);
            if magazine.capacity == 0 || !front.owns(class, block.addr()) {
                self.coalesce(heap, class, block);
                return;
            }
            if *front.top(class) == FULL {
                magazine.note(Event::Flush, class);
                let oldest = usize::from(magazine.capacity).div_ceil(2);
                self.release_oldest(heap, class, oldest);
            }
            let top = front.top(class);
            *top = block;
            front.set_top(class, top.add(1));
        }
    }

    /// Sends a block on its way to its slab.
    ///
    /// # Safety
    ///
    /// As for [`put_own`](Self::put_own).
    unsafe fn coalesce(&self, heap: NonNull<ThreadHeap>, class: SizeClass, block: *mut u8) {
        // SAFETY: the heap is this thread's, and so is its coalescer; its memory is zero at first.
        unsafe {
            let place = heap.as_ptr();
            ThreadHeap::gave(heap, 1);
            if (*place).coalescer.is_null() && class.number() < FIRST_SHARED {
                let bytes = size_of::<Coalescer>();
                let memory = self.metadata.lock().allocate(&self.pages, bytes);
                if let Some(memory) = memory {
                    (*place).coalescer = memory.as_ptr().cast();
                }
            }
            if (*place).coalescer.is_null() || class.number() >= FIRST_SHARED {
                self.give_or_report(self.bin(heap, class), class, &mut [block]);
                return;
            }
            let slab = self.slab_of(block.addr());
            (*(*place).coalescer).add(slab, class, block, |class, blocks| {
                self.give_or_report(self.bin(heap, class), class, blocks);
            });
        }
    }

    /// Gives back what the heap's coalescer has gathered.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's.
    pub unsafe fn empty_coalescer(&self, heap: NonNull<ThreadHeap>) {
        // SAFETY: the heap is this thread's, and so is its coalescer.
        unsafe {
            if let Some(mut coalescer) = NonNull::new((*heap.as_ptr()).coalescer) {
                coalescer.as_mut().empty(|class, blocks| {
                    self.give_or_report(self.bin(heap, class), class, blocks);
                });
            }
        }
    }
}
