//! The slow paths of magazines: refill, flush, and the beginning and end of a thread heap.

use core::ptr::{NonNull, null_mut};
use heapdrome_pages::atomic::Ordering::Relaxed;

use heapdrome_pages::Pages;

use crate::heap::backend::Backend;
use crate::heap::front::ThreadHeap;
use crate::heap::magazine::{Event, Magazine};
use crate::misuse::report;
use crate::size_class::{FIRST_SHARED, SizeClass, UNIT};
use crate::slabs::bin::Bin;

/// All magazines together may hold about this part of what lives.
const LIVE_PART: usize = 8;
/// The first block of a class above 4 KiB that a magazine keeps may be a thread's share of this part of what
/// lives in any case.
const FIRST_PART: usize = 256;
/// What a thread's magazines may hold in any case.
const LEAST_SHARE: usize = 64 << 10;

impl<P: Pages> Backend<P> {
    /// The bin that the heap's thread takes blocks of `class` from, if it runs where the caller does.
    ///
    /// # Safety
    ///
    /// The heap is one.
    #[inline]
    pub unsafe fn bin(&self, heap: NonNull<ThreadHeap>, class: SizeClass) -> &Bin {
        if class.number() >= FIRST_SHARED {
            return &self.bins[class.number()];
        }
        // SAFETY: the caller's promise; heaps live for ever, and bins may be used by any thread.
        unsafe { &(*self.host_of(heap).as_ptr()).bins[class.number()] }
    }

    /// A block of `class` after its magazine was found empty; null where there is no memory.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's, and its magazine of `class` is empty.
    pub unsafe fn refill(&self, heap: NonNull<ThreadHeap>, class: SizeClass) -> *mut u8 {
        // SAFETY: the heap is this thread's; the slots have room for `want` blocks.
        unsafe {
            let place = heap.as_ptr();
            if (*place).front.is_due() {
                self.look_around(heap);
            }
            // A pointer: what is called on the way makes references of its own. So below.
            let magazine = &raw mut (*place).magazines[class.number()];
            let wants = (*magazine).note(Event::Refill, class) || (*magazine).capacity == 0;
            if wants && !(*magazine).wake() {
                self.grow(heap, class);
            }
            if (*magazine).capacity == 0 {
                // Large blocks of which the thread may keep none: it looks at the clock all the same.
                (*place).front.count(1);
                return self.take_only(heap, self.bin(heap, class), class);
            }
            let want = batch((*magazine).capacity);
            let mut taken = self.take_back(heap, class, (*magazine).slots, want);
            if taken == 0 {
                let bin = self.bin(heap, class);
                taken = self.take(bin, class, (*magazine).slots, want);
                if taken == 0 {
                    return self.take_last(heap, bin, class);
                }
            }
            (*place).front.count(taken);
            (*place).outflow.take(taken);
            let last = (*magazine).slots.add(taken - 1);
            (*place).front.set_top(class, last);
            self.note_length(heap, class);
            *last
        }
    }

    /// A block for a thread without a heap, or without slots; null where there is no memory.
    ///
    /// # Safety
    ///
    /// `bin` is one for `class`.
    pub unsafe fn take_one(&self, bin: &Bin, class: SizeClass) -> *mut u8 {
        let mut block = null_mut();
        // SAFETY: the caller's promise; one slot, for one block.
        unsafe { self.take(bin, class, &raw mut block, 1) };
        block
    }

    /// A block for a thread that keeps none of its class; null where there is no memory, not even when what the thread
    /// keeps of other classes has been given back.
    ///
    /// # Safety
    ///
    /// As for [`refill`](Self::refill); `bin` is one for `class`.
    pub(crate) unsafe fn take_only(
        &self,
        heap: NonNull<ThreadHeap>,
        bin: &Bin,
        class: SizeClass,
    ) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe {
            let block = self.take_one(bin, class);
            if block.is_null() {
                return self.take_last(heap, bin, class);
            }
            (*heap.as_ptr()).outflow.take(1);
            block
        }
    }

    /// Tries once more after giving back what this thread keeps.
    ///
    /// # Safety
    ///
    /// As for [`take_only`](Self::take_only).
    #[cold]
    pub(crate) unsafe fn take_last(
        &self,
        heap: NonNull<ThreadHeap>,
        bin: &Bin,
        class: SizeClass,
    ) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe {
            self.empty_magazines(heap, false);
            self.release_kept();
            let mut block = self.take_one(bin, class);
            if block.is_null() {
                block = self.take_anywhere(class);
            }
            (*heap.as_ptr()).outflow.take(usize::from(!block.is_null()));
            block
        }
    }

    /// A block from whatever bin has one. Those that the thread freed may lie in another host's, since it ran on another
    /// processor when it took them.
    fn take_anywhere(&self, class: SizeClass) -> *mut u8 {
        let mut block: *mut u8 = null_mut();
        self.each_bin_with_class(|bin, of| {
            if block.is_null() && of == class {
                // SAFETY: the bin is one for the class; one slot for one block.
                unsafe { bin.lock().take(&raw mut block, 1) };
            }
        });
        block
    }

    /// Puts a block into a magazine that was found full.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's, its magazine of `class` is full or has no slots, or rests, and the
    /// block is one of `class` that nobody uses.
    pub unsafe fn flush(&self, heap: NonNull<ThreadHeap>, class: SizeClass, block: *mut u8) {
        // SAFETY: the heap is this thread's.
        unsafe {
            let place = heap.as_ptr();
            let magazine = &raw mut (*place).magazines[class.number()];
            let again = (*magazine).was(Event::Flush);
            let wants = (*magazine).note(Event::Flush, class);
            if !((wants || (*magazine).capacity == 0) && self.grow(heap, class)) {
                if (*magazine).capacity == 0 {
                    (*place).front.count(1);
                    ThreadHeap::gave(heap, 1);
                    self.give_or_report(self.bin(heap, class), class, &mut [block]);
                    return;
                }
                // A thread that only frees wants none of them back.
                let oldest = usize::from((*magazine).capacity).div_ceil(if again { 1 } else { 2 });
                if (*magazine).was_refilled() {
                    self.remove_oldest(heap, class, oldest, |blocks| {
                        self.spill(heap, class, blocks);
                    });
                } else {
                    self.release_oldest(heap, class, oldest);
                }
            }
            let top = (*place).front.top(class);
            *top = block;
            (*place).front.set_top(class, top.add(1));
        }
    }

    /// Gives all blocks of a magazine back to their slabs, and notes that it holds none.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's.
    pub(crate) unsafe fn empty_magazine(&self, heap: NonNull<ThreadHeap>, class: SizeClass) {
        // SAFETY: the caller's promise; the magazine holds as many as it says.
        unsafe {
            let place = heap.as_ptr();
            let length = (*place).magazines[class.number()].length(&(*place).front, class);
            self.release_oldest(heap, class, length);
            self.note_length(heap, class);
        }
    }

    /// Gives the `count` blocks that lie longest in a magazine back to their slabs.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's, and the magazine holds that many.
    pub(crate) unsafe fn release_oldest(
        &self,
        heap: NonNull<ThreadHeap>,
        class: SizeClass,
        count: usize,
    ) {
        // SAFETY: the blocks were the thread's.
        unsafe {
            self.remove_oldest(heap, class, count, |blocks| {
                self.give_or_report(self.bin(heap, class), class, blocks);
            });
        }
    }

    /// Takes the `count` blocks that lie longest in a magazine out by `give`.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's, and the magazine holds that many.
    unsafe fn remove_oldest(
        &self,
        heap: NonNull<ThreadHeap>,
        class: SizeClass,
        count: usize,
        give: impl FnOnce(&mut [*mut u8]),
    ) {
        if count == 0 {
            return;
        }
        // SAFETY: the slots to the top hold blocks; those released are overwritten or above the top
        // afterwards.
        unsafe {
            let place = heap.as_ptr();
            ThreadHeap::gave(heap, count);
            let magazine = &(*place).magazines[class.number()];
            let slots = magazine.slots;
            let rest = magazine.length(&(*place).front, class) - count;
            let oldest = core::slice::from_raw_parts_mut(slots, count);
            give(oldest);
            slots.copy_from(slots.add(count), rest);
            (*place).front.set_top(class, slots.add(rest));
            self.note_length(heap, class);
        }
    }

    /// Gives blocks back; ends the process if one is none.
    ///
    /// # Safety
    ///
    /// As for [`give`](Self::give).
    pub unsafe fn give_or_report(
        &self,
        home: *const Bin,
        class: SizeClass,
        blocks: &mut [*mut u8],
    ) {
        // SAFETY: the caller's promise.
        if let Err(misuse) = unsafe { self.give(home, class, blocks) } {
            report(misuse);
        }
    }

    /// How many bytes more the magazines of a heap may hold that has so much of its budget left: with those of all other threads together
    /// not much more than a part of what lives.
    fn may_grow_by(&self, budget: usize) -> usize {
        let share = self.share_of_live(LIVE_PART);
        // Relaxed: a number that stands alone.
        let whole = self.budget.load(Relaxed);
        let spent = whole.saturating_sub(budget);
        share.max(LEAST_SHARE).min(whole).saturating_sub(spent)
    }

    /// A thread's share of a part of what lives: a half, a third, and so on.
    fn share_of_live(&self, part: usize) -> usize {
        // Relaxed: numbers that stand alone.
        // One of the threads waits for the others, as a rule the first.
        let threads = self.threads.load(Relaxed).max(2) - 1;
        (self.live.load(Relaxed) * UNIT) / (part * threads)
    }

    /// Makes a magazine larger, as far as the limits allow; true if it did.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's.
    unsafe fn grow(&self, heap: NonNull<ThreadHeap>, class: SizeClass) -> bool {
        let limit = self.magazine.load(Relaxed);
        // SAFETY: the heap is this thread's.
        unsafe {
            let place = heap.as_ptr();
            let magazine = &raw mut (*place).magazines[class.number()];
            if (*magazine).resting() != 0 {
                return false;
            }
            let old = usize::from((*magazine).capacity);
            let wanted = if old == 0 {
                Magazine::first_capacity(class, limit)
            } else {
                Magazine::next_capacity((*magazine).capacity).min(Magazine::largest(class, limit))
            };
            let cost = wanted.saturating_sub(old) * class.size();
            // The first slots of small blocks cost little. One block of each larger class would be much of a
            // small heap.
            let large =
                class.number() >= FIRST_SHARED && class.size() > self.share_of_live(FIRST_PART);
            let bound = old != 0 || large;
            if wanted <= old || (bound && cost > self.may_grow_by((*place).budget)) {
                return false;
            }
            let front = &(*place).front;
            let own = &mut (*place).metadata;
            if !(*magazine).resize(front, class, wanted, own, &self.metadata, &self.pages) {
                return false;
            }
            (*place).budget = (*place).budget.saturating_sub(cost);
            true
        }
    }
}

/// How many blocks a refill takes: half of what the magazine holds, and whole words of a bitmap where
/// that is more than one.
fn batch(capacity: u16) -> usize {
    let half = usize::from(capacity).div_ceil(2);
    if half < 64 { half } else { half & !63 }
}
