//! The beginning and the end of a thread heap, and what is known of it.

use core::ptr::NonNull;
use heapdrome_pages::atomic::Ordering::Relaxed;

use heapdrome_pages::Pages;

use crate::backend::Backend;
use crate::heap::ThreadHeap;
use crate::size_class::{CLASSES, SizeClass};

impl<P: Pages> Backend<P> {
    /// A heap for the calling thread; `None` where there is no memory.
    pub fn attach(&self) -> Option<NonNull<ThreadHeap>> {
        let budget = self.budget.load(Relaxed);
        let mut heaps = self.heaps.lock();
        if let Some(heap) = heaps.take_idle() {
            drop(heaps);
            // SAFETY: the heap is this thread's now.
            unsafe { self.set_idle(heap, false) };
            // Relaxed: a number that stands alone.
            self.threads.fetch_add(1, Relaxed);
            return Some(heap);
        }
        let bytes = size_of::<ThreadHeap>();
        let memory = self.metadata.lock().allocate(&self.pages, bytes)?;
        // SAFETY: the memory is new, large enough, and aligned to its size or a page.
        let heap = unsafe { ThreadHeap::write(memory, budget) };
        heaps.add(heap);
        drop(heaps);
        // SAFETY: the heap is this thread's.
        unsafe { self.set_idle(heap, false) };
        // Relaxed: as above.
        self.threads.fetch_add(1, Relaxed);
        Some(heap)
    }

    /// Takes the heap of a thread that ends: its blocks go back, its slabs to where others find them.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's, which uses it no more.
    pub unsafe fn detach(&self, heap: NonNull<ThreadHeap>) {
        // SAFETY: the caller's promise.
        unsafe {
            self.empty_quarantine(heap);
            self.empty_magazines(heap, true);
            self.empty_depot(heap);
            self.set_idle(heap, true);
            let bins = &(*heap.as_ptr()).bins;
            for (number, bin) in bins.iter().enumerate().skip(1) {
                if bin.lock().slabs != 0 {
                    self.evacuate(bin, SizeClass::from_number(number as u8));
                }
            }
            (*heap.as_ptr()).budget = self.budget.load(Relaxed);
        }
        self.heaps.lock().put_idle(heap);
        // Relaxed: who waits for the last one to end reads the count of that.
        if self.threads.fetch_sub(1, Relaxed) == 1 {
            self.silences.advance();
        }
        self.tick();
    }

    /// # Safety
    ///
    /// The heap is the calling thread's.
    unsafe fn set_idle(&self, heap: NonNull<ThreadHeap>, idle: bool) {
        // SAFETY: bins may be used by any thread.
        for bin in unsafe { &(*heap.as_ptr()).bins } {
            bin.lock().set_idle(idle);
        }
    }

    /// Notes for statistics how many blocks a magazine holds.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's.
    #[inline]
    pub(crate) unsafe fn note_length(&self, heap: NonNull<ThreadHeap>, class: SizeClass) {
        // SAFETY: the heap is this thread's.
        unsafe {
            let place = heap.as_ptr();
            let length = (*place).magazines[class.number()].length(&(*place).front, class);
            // Relaxed: a number that stands alone.
            (*place).cached[class.number()].store(length as u16, Relaxed);
        }
    }

    /// Notes the same of all the thread's magazines, and gives back what is on its way.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's.
    pub unsafe fn note_cached(&self, heap: NonNull<ThreadHeap>) {
        // SAFETY: the caller's promise.
        unsafe {
            self.empty_coalescer(heap);
            for number in 1..=CLASSES {
                self.note_length(heap, SizeClass::from_number(number as u8));
            }
        }
    }

    /// Gives all blocks in magazines back; `discard` the slots too.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's.
    pub unsafe fn empty_magazines(&self, heap: NonNull<ThreadHeap>, discard: bool) {
        for number in 1..=CLASSES {
            let class = SizeClass::from_number(number as u8);
            // SAFETY: the caller's promise.
            unsafe {
                let place = heap.as_ptr();
                let length = (*place).magazines[number].length(&(*place).front, class);
                self.release_oldest(heap, class, length);
                self.note_length(heap, class);
                if discard {
                    let magazine = &mut (*place).magazines[number];
                    magazine.discard(&(*place).front, class, &self.metadata);
                    (*place).front.set_own(class, 0, 0);
                }
            }
        }
        // SAFETY: the caller's promise.
        unsafe { self.empty_coalescer(heap) };
    }
}
