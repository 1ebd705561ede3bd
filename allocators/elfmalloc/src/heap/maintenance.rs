//! What a thread does now and then, whatever else it does: it looks at the clock.

use core::ptr::NonNull;
use heapdrome_pages::atomic::Ordering::Relaxed;

use heapdrome_pages::Pages;
use heapdrome_pages::system::coarse_milliseconds;

use crate::heap::backend::Backend;
use crate::heap::front::{MOST_TICKS, MOST_TICKS_GIVING, ThreadHeap};
use crate::heap::magazine::Magazine;
use crate::size_class::{CLASSES, SizeClass};

impl<P: Pages> Backend<P> {
    /// What a thread does every now and then: purge if it is time, and empty what it does not use.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's.
    pub unsafe fn look_around(&self, heap: NonNull<ThreadHeap>) {
        let now = coarse_milliseconds();
        // SAFETY: the heap is this thread's.
        unsafe {
            let place = heap.as_ptr();
            let most = if core::mem::take(&mut (*place).giving) {
                MOST_TICKS_GIVING
            } else {
                MOST_TICKS
            };
            (*place).clock = next_look((*place).clock, now, most);
            (*place).front.set_ticks((*place).clock.1);
            if (*place).outflow.look() {
                self.drain(heap);
            }
            if now.wrapping_sub((*place).looked) >= self.decay.load(Relaxed) / 4 {
                (*place).looked = now;
                self.spread(heap);
                self.as_idle(|| self.empty_unused(heap));
            }
        }
        self.tick();
    }

    /// Empties the magazines that have not been refilled or flushed of late.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's.
    unsafe fn empty_unused(&self, heap: NonNull<ThreadHeap>) {
        for number in 1..=CLASSES {
            // SAFETY: the heap is this thread's.
            unsafe {
                if (*heap.as_ptr()).magazines[number].look() {
                    self.shrink(heap, SizeClass::from_number(number as u8));
                }
            }
        }
        // SAFETY: as above.
        unsafe { self.empty_coalescer(heap) };
    }

    /// Empties a magazine, and halves its capacity.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's, and the magazine has slots.
    unsafe fn shrink(&self, heap: NonNull<ThreadHeap>, class: SizeClass) {
        // SAFETY: the heap is this thread's.
        unsafe {
            self.empty_magazine(heap, class);
            let place = heap.as_ptr();
            // A pointer: what is called on the way makes references of its own.
            let magazine = &raw mut (*place).magazines[class.number()];
            let rests = (*magazine).wake();
            let capacity = usize::from((*magazine).capacity);
            let first = Magazine::first_capacity(class, usize::MAX);
            let smaller = (capacity / 2).max(first);
            if smaller < capacity {
                let front = &(*place).front;
                let own = &mut (*place).metadata;
                (*magazine).resize(front, class, smaller, own, &self.metadata, &self.pages);
                (*place).budget += (capacity - smaller) * class.size();
            }
            if rests {
                (*magazine).rest();
            }
        }
    }
}

impl ThreadHeap {
    /// Notes that so many blocks leave a heap.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's.
    #[inline]
    pub(crate) unsafe fn gave(heap: NonNull<Self>, blocks: usize) {
        // SAFETY: the heap is this thread's.
        unsafe {
            (*heap.as_ptr()).outflow.give(blocks);
            if !(*heap.as_ptr()).giving {
                Self::begin_giving(heap);
            }
        }
    }

    /// The thread looks at the clock sooner from now on.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's.
    #[cold]
    unsafe fn begin_giving(heap: NonNull<Self>) {
        // SAFETY: the heap is this thread's.
        unsafe {
            let place = heap.as_ptr();
            (*place).giving = true;
            (*place).clock.1 = (*place).clock.1.min(MOST_TICKS_GIVING);
            (*place).front.limit_ticks(MOST_TICKS_GIVING);
        }
    }
}

/// When to look at the clock next, after it was last looked at `last.0` and `last.1` frees went by until
/// `now`: some tens of milliseconds from now, at this thread's pace, after `most` frees at the latest.
fn next_look(last: (u64, i32), now: u64, most: i32) -> (u64, i32) {
    let ticks = match now.wrapping_sub(last.0) {
        0..10 => last.1 * 2,
        10..50 => last.1,
        passed => i32::try_from(u64::from(last.1.unsigned_abs()) * 25 / passed).unwrap_or(0),
    };
    (now, ticks.clamp(1, most))
}
