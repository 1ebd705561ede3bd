//! Thread-local cache: a front-end that caches fewer free blocks.
//!
//! A magazine holds only blocks of the slab that supplied its last refill. Other blocks of up to 4
//! KiB that the thread frees go back to their slabs through a small coalescer. Larger blocks go
//! back one by one.

use core::ptr::NonNull;

use heapdrome_pages::Pages;

use crate::heap::coalescer::Coalescer;
use crate::heap::flush::release_oldest;
use crate::heap::front::Front;
use crate::heap::front_end::FrontEnd;
use crate::heap::heaps::Heaps;
use crate::heap::magazine::Event;
use crate::heap::refill::{take_last, take_only};
use crate::heap::thread_heap::HeapRef;
use crate::size_class::{FIRST_SHARED, SizeClass};
use crate::slabs::free_blocks::FreeBlock;

/// Maximum number of bytes of blocks in a magazine. A magazine may always hold two blocks.
const BYTES: usize = 4 << 10;
/// Maximum number of blocks in a magazine.
const MOST: usize = 30;

/// Front-end that caches only blocks of the slabs that supplied the thread's last refills.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalCache;

impl FrontEnd for LocalCache {
    const NAME: &'static str = "elfmalloc-l";
    const HUGE_PAGES: bool = false;

    #[inline(always)]
    unsafe fn free(front: &Front, block: *mut u8) -> bool {
        // SAFETY: this function's contract is that of `free_own`.
        unsafe { front.free_own(block) }
    }

    fn refill<P: Pages>(heaps: &Heaps<P>, heap: HeapRef, class: SizeClass) -> *mut u8 {
        let bin = heaps.bin(heap, class);
        if class.number() >= FIRST_SHARED || !open(heaps, heap, class) {
            return take_only(heaps, heap, bin);
        }
        let magazine = heap.magazine(class);
        magazine.note(Event::Refill, class);
        let want = magazine.capacity().div_ceil(2);
        let (taken, block) = magazine.refill(want, |slots| heaps.take_from_one(bin, slots));
        if taken == 0 {
            return take_last(heaps, heap, bin);
        }
        heap.outflow.take(taken);
        if let Some(slab) = heaps.memory().run_of(block.addr()) {
            let bytes = slab.units().bytes();
            heap.front.set_own(class, slab.base().addr(), bytes);
        }
        heap.note_length(class);
        block
    }

    fn put<P: Pages>(heaps: &Heaps<P>, heap: HeapRef, block: FreeBlock) {
        let class = block.class();
        let magazine = heap.magazine(class);
        heap.front.count(1);
        if magazine.capacity() == 0 || !heap.front.owns(class, block.as_ptr().addr()) {
            coalesce(heaps, heap, block);
            return;
        }
        if let Err(block) = magazine.push(block) {
            magazine.note(Event::Flush, class);
            let oldest = magazine.capacity().div_ceil(2);
            release_oldest(heaps, heap, class, oldest);
            if let Err(block) = magazine.push(block) {
                heaps.give_one(Some(heap), block);
            }
        }
    }
}

/// Returns the number of blocks that a magazine may hold.
fn capacity_of(class: SizeClass) -> usize {
    (BYTES / class.size()).clamp(2, MOST)
}

/// Enlarges a magazine to its fixed capacity. Returns whether it has any slots; it has none only if
/// out of memory.
fn open<P: Pages>(heaps: &Heaps<P>, heap: HeapRef, class: SizeClass) -> bool {
    let magazine = heap.magazine(class);
    let (capacity, wanted) = (magazine.capacity(), capacity_of(class));
    let memory = heaps.memory();
    if capacity < wanted
        && magazine.resize(wanted, &heap.metadata, &memory.structures, &memory.pages)
    {
        let cost = (wanted - capacity) * class.size();
        heap.budget.set(heap.budget.get().saturating_sub(cost));
    }
    magazine.capacity() != 0
}

/// Gives a block back to its slab, through the coalescer if possible.
fn coalesce<P: Pages>(heaps: &Heaps<P>, heap: HeapRef, block: FreeBlock) {
    heap.gave(1);
    let slab = heaps.memory().run_of(block.as_ptr().addr());
    if block.class().number() < FIRST_SHARED
        && let Some(slab) = slab
        && let Some(coalescer) = coalescer(heaps, &heap)
    {
        coalescer.add(slab.addr(), block, |blocks| heaps.give_from(heap, blocks));
    } else {
        heaps.give_one(Some(heap), block);
    }
}

/// Returns the heap's coalescer, created on demand; `None` if out of memory.
fn coalescer<'a, P: Pages>(heaps: &Heaps<P>, heap: &'a HeapRef) -> Option<&'a Coalescer> {
    if heap.coalescer.get().is_none() {
        let memory = heaps.memory();
        let bytes = size_of::<Coalescer>();
        let place = memory.structures.lock().allocate(&memory.pages, bytes)?;
        let place: NonNull<Coalescer> = place.cast();
        // SAFETY: the memory is new, large enough, and sufficiently aligned.
        unsafe { place.write(Coalescer::new()) };
        heap.coalescer.set(Some(place));
    }
    heap.coalescer()
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use heapdrome_pages::Simulated;

    use super::*;
    use crate::heap::front_end::Magazines;
    use crate::settings::Settings;
    use crate::size_class::UNIT_SHIFT;

    /// A thread, and a back-end with little memory.
    struct Scene {
        heaps: Heaps<Simulated>,
        heap: HeapRef,
    }

    impl Scene {
        fn new() -> Self {
            let heaps = Heaps::new(Simulated::new(if cfg!(miri) { 1 << 20 } else { 3 << 20 }));
            heaps.start(|| Settings {
                arena: 0,
                budget: 0,
                ..Settings::DEFAULT
            });
            let heap = heaps.attach().expect("there is memory");
            Self { heaps, heap }
        }

        fn allocate<F: FrontEnd>(&self, class: SizeClass) -> *mut u8 {
            let block = self.heap.magazine(class).pop();
            if block.is_null() {
                return F::refill(&self.heaps, self.heap, class);
            }
            block
        }

        fn free<F: FrontEnd>(&self, class: SizeClass, block: *mut u8) {
            let block = NonNull::new(block).expect("a block");
            // SAFETY: the test passes an allocated block of `class`, and no longer uses it.
            let block = unsafe { FreeBlock::new(class, block) };
            F::put(&self.heaps, self.heap, block);
        }

        fn fill<F: FrontEnd>(&self, class: SizeClass) -> Vec<*mut u8> {
            let blocks = core::iter::repeat_with(|| self.allocate::<F>(class));
            blocks.take_while(|block| !block.is_null()).collect()
        }

        /// Returns the number of blocks of `class` in the magazine, and the number of blocks of all
        /// classes that the thread's outflow counts.
        fn counts(&self, class: SizeClass) -> (usize, isize) {
            let length = self.heap.magazine(class).length();
            (length, -self.heap.outflow.balance())
        }
    }

    fn all_that_a_thread_has_is_counted<F: FrontEnd>() {
        let scene = Scene::new();
        let [small, other, large] = [896, 64, 96 << 10].map(SizeClass::of);
        // Allocate one block first, so that its magazine has slots when memory is used up.
        assert!(!scene.allocate::<F>(other).is_null());
        let blocks = scene.fill::<F>(small);
        let more = scene.fill::<F>(other).len() + scene.fill::<F>(large).len();
        let had = 1 + blocks.len() + more;
        assert_eq!(scene.counts(other), (0, had as isize));
        // Free the blocks of one slab. Apart from the blocks that stay in a magazine, only this
        // slab's memory is available to another class.
        let unit = |block: *mut u8| block.addr() >> UNIT_SHIFT;
        let slab = unit(blocks[0])..unit(blocks[0]) + usize::from(small.geometry().units);
        let free = blocks.iter().filter(|block| slab.contains(&unit(**block)));
        free.clone()
            .for_each(|block| scene.free::<F>(small, *block));
        assert!(!scene.allocate::<F>(other).is_null());
        let (kept, counted) = scene.counts(other);
        assert_eq!(counted, (had - free.count() + 1 + kept) as isize);
        scene.heaps.check();
    }

    #[test]
    fn all_that_a_thread_has_is_counted_where_memory_is_used_up() {
        all_that_a_thread_has_is_counted::<Magazines>();
        all_that_a_thread_has_is_counted::<LocalCache>();
    }
}
