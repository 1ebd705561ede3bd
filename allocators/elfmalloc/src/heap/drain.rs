//! A thread that gave back most of what it had empties its magazines: it may fall silent, and nobody else reaches
//! what lies there then.

use core::ptr::NonNull;
use heapdrome_pages::atomic::Ordering::Relaxed;

use heapdrome_pages::Pages;

use crate::heap::backend::Backend;
use crate::heap::front::ThreadHeap;
use crate::size_class::{CLASSES, FIRST_SHARED, SizeClass};

/// Fewer blocks are not most of what a thread had.
const LEAST: isize = 256;
/// Magazines are left alone that may hold at most this part of what they might.
const KEPT_PART: usize = 8;

/// How many blocks a thread has, and when it has given most of them back. Counted in slow paths, so that those in
/// magazines count as the thread's.
#[derive(Debug)]
pub struct Outflow {
    /// Blocks that left the magazines, less those that came: below zero where the thread has some.
    balance: isize,
    /// The least that it was at looks at the clock, since most of that was last given back.
    least: isize,
    /// How many blocks magazines held when they were last emptied.
    emptied: usize,
}

impl Outflow {
    /// That of a thread that begins.
    pub const NONE: Self = Self {
        balance: 0,
        least: 0,
        emptied: 0,
    };

    /// Counts blocks that come.
    #[inline]
    pub const fn take(&mut self, blocks: usize) {
        self.balance -= blocks as isize;
    }

    /// Counts blocks that leave.
    #[inline]
    pub const fn give(&mut self, blocks: usize) {
        self.balance += blocks as isize;
    }

    /// Notes how much the thread has. True where that is a quarter of the most, at most, and [`settle`](Self::settle) is to
    /// be called. A thread that has none left frees the blocks of others: then it is true each time as many have left as
    /// magazines held, so that emptying them costs no more than what was freed.
    pub fn look(&mut self) -> bool {
        let wait = match self.least {
            0.. => self.emptied as isize,
            least => -least / 4 * 3,
        };
        self.least = self.least.min(self.balance);
        self.balance >= self.least + wait.max(LEAST)
    }

    /// Waits for a quarter of what the thread has now; `balance` was the count before its magazines were emptied.
    const fn settle(&mut self, balance: isize) {
        self.emptied = (self.balance - balance) as usize;
        self.least = self.balance;
    }
}

impl<P: Pages> Backend<P> {
    /// Empties the thread's magazines, if they may hold much, and has those of blocks above 4 KiB rest.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's.
    pub(crate) unsafe fn drain(&self, heap: NonNull<ThreadHeap>) {
        // Relaxed: a number that stands alone.
        let whole = self.budget.load(Relaxed);
        // SAFETY: the heap is this thread's, and a magazine rests when it is empty.
        unsafe {
            let place = heap.as_ptr();
            let balance = (*place).outflow.balance;
            if whole.saturating_sub((*place).budget) <= whole / KEPT_PART {
                (*place).outflow.settle(balance);
                return;
            }
            for number in 1..=CLASSES {
                // A pointer: what is called on the way makes references of its own.
                let magazine = &raw mut (*place).magazines[number];
                if (*magazine).capacity != 0 {
                    let class = SizeClass::from_number(number as u8);
                    self.empty_magazine(heap, class);
                    if number >= FIRST_SHARED {
                        (*magazine).rest();
                    }
                }
            }
            (*place).outflow.settle(balance);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use heapdrome_pages::Simulated;

    use super::*;
    use crate::heap::front_end::{FrontEnd, Magazines};
    use crate::heap::local_cache::LocalCache;
    use crate::settings::Settings;
    use crate::size_class::UNIT_SHIFT;

    #[test]
    fn a_quarter_of_the_most_is_waited_for_and_then_a_quarter_of_that() {
        let mut outflow = Outflow::NONE;
        outflow.take(16_000);
        assert!(!outflow.look());
        for part in [12_000, 3_000] {
            outflow.give(part - 1);
            assert!(!outflow.look());
            outflow.give(1);
            assert!(outflow.look());
            outflow.settle(outflow.balance);
        }
    }

    #[test]
    fn what_magazines_held_is_waited_for_where_the_thread_has_nothing_of_its_own() {
        let mut outflow = Outflow::NONE;
        outflow.give(LEAST as usize);
        assert!(outflow.look());
        let before = outflow.balance;
        outflow.give(5_000);
        outflow.settle(before);
        outflow.give(4_999);
        assert!(!outflow.look());
        outflow.give(1);
        assert!(outflow.look());
    }

    #[test]
    fn few_blocks_are_not_waited_for() {
        let mut outflow = Outflow::NONE;
        for _ in 0..3 {
            outflow.give(LEAST as usize - 1);
            assert!(!outflow.look());
            outflow.give(1);
            assert!(outflow.look());
            outflow.settle(outflow.balance);
        }
    }

    /// A thread over little memory.
    struct Scene {
        backend: Backend<Simulated>,
        heap: NonNull<ThreadHeap>,
    }

    impl Scene {
        fn new() -> Self {
            let backend = Backend::new(Simulated::new(if cfg!(miri) { 1 << 20 } else { 3 << 20 }));
            backend.start(|| Settings {
                arena: 0,
                budget: 0,
                ..Settings::DEFAULT
            });
            let heap = backend.attach().expect("there is memory");
            Self { backend, heap }
        }

        fn allocate<F: FrontEnd>(&self, class: SizeClass) -> *mut u8 {
            // SAFETY: the heap is this thread's, and its magazine is empty where nothing comes out of it.
            unsafe {
                let block = (*self.heap.as_ptr()).front.pop(class);
                if block.is_null() {
                    return F::refill(&self.backend, self.heap, class);
                }
                block
            }
        }

        fn fill<F: FrontEnd>(&self, class: SizeClass) -> Vec<*mut u8> {
            let blocks = core::iter::repeat_with(|| self.allocate::<F>(class));
            blocks.take_while(|block| !block.is_null()).collect()
        }

        /// How many blocks of `class` the magazine holds, and how many of all classes were counted.
        fn counts(&self, class: SizeClass) -> (usize, isize) {
            // SAFETY: the heap is this thread's.
            unsafe {
                let heap = &*self.heap.as_ptr();
                let length = heap.magazines[class.number()].length(&heap.front, class);
                (length, -heap.outflow.balance)
            }
        }
    }

    fn all_that_a_thread_has_is_counted<F: FrontEnd>() {
        let scene = Scene::new();
        let [small, other, large] = [896, 64, 96 << 10].map(SizeClass::of);
        // One first, so that its magazine has slots when there is no memory for them.
        assert!(!scene.allocate::<F>(other).is_null());
        let blocks = scene.fill::<F>(small);
        let more = scene.fill::<F>(other).len() + scene.fill::<F>(large).len();
        let had = 1 + blocks.len() + more;
        assert_eq!(scene.counts(other), (0, had as isize));
        // The blocks of one slab: with those that a magazine keeps, all that is left for another class.
        let unit = |block: *mut u8| block.addr() >> UNIT_SHIFT;
        let slab = unit(blocks[0])..unit(blocks[0]) + usize::from(small.geometry().units);
        let free = blocks.iter().filter(|block| slab.contains(&unit(**block)));
        for &block in free.clone() {
            // SAFETY: the heap is this thread's, and the block the test's own.
            unsafe { F::put(&scene.backend, scene.heap, small, block) };
        }
        assert!(!scene.allocate::<F>(other).is_null());
        let (kept, counted) = scene.counts(other);
        assert_eq!(counted, (had - free.count() + 1 + kept) as isize);
        scene.backend.check();
    }

    #[test]
    fn all_that_a_thread_has_is_counted_where_memory_is_used_up() {
        all_that_a_thread_has_is_counted::<Magazines>();
        all_that_a_thread_has_is_counted::<LocalCache>();
    }
}
