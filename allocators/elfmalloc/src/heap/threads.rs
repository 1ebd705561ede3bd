//! The beginning and the end of a thread heap, and what is known of it.

use core::ptr::NonNull;
use heapdrome_pages::atomic::Ordering::Relaxed;

use heapdrome_pages::Pages;

use crate::heap::backend::Backend;
use crate::heap::drain::Outflow;
use crate::heap::front::ThreadHeap;
use crate::heap::heaps::{Heaps, guests_of};
use crate::size_class::{CLASSES, SizeClass};

impl<P: Pages> Backend<P> {
    /// A heap for the calling thread; `None` where there is no memory.
    pub fn attach(&self) -> Option<NonNull<ThreadHeap>> {
        let mut heaps = self.heaps.lock();
        let heap = match heaps.take_idle() {
            Some(heap) => heap,
            None => self.new_heap(&mut heaps)?,
        };
        // SAFETY: the heap is this thread's now.
        unsafe {
            (*heap.as_ptr()).outflow = Outflow::NONE;
            (*heap.as_ptr()).front.set_map(&self.map);
            self.enter(&mut heaps, heap);
        }
        drop(heaps);
        // Relaxed: a number that stands alone.
        self.threads.fetch_add(1, Relaxed);
        Some(heap)
    }

    /// Says that so many threads may run at once. What was said before stays true: the caller may be a thread that was
    /// bound to a processor.
    pub fn widen(&self, processors: usize) {
        // Relaxed: a number that stands alone. Most find it as large, and leave its line to all who read it.
        if self.hosts.load(Relaxed) < processors {
            self.hosts.fetch_max(processors, Relaxed);
        }
    }

    fn most_hosts(&self) -> usize {
        // Relaxed: as above.
        self.hosts.load(Relaxed).max(1)
    }

    /// Whether threads with a heap are more than hosts.
    #[inline]
    pub(crate) fn threads_outnumber_hosts(&self) -> bool {
        // Relaxed: a number that stands alone.
        self.threads.load(Relaxed) > self.most_hosts()
    }

    /// Moves the thread to a host with fewer guests, if there is one: threads have ended since it began.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's.
    pub(crate) unsafe fn spread(&self, heap: NonNull<ThreadHeap>) {
        // SAFETY: the caller's promise. Relaxed: this thread's own.
        if guests_of(unsafe { (*heap.as_ptr()).host.load(Relaxed) }) < 2 {
            return;
        }
        let Some(mut heaps) = self.heaps.try_lock() else {
            return;
        };
        // SAFETY: the caller's promise.
        unsafe {
            if heaps.has_emptier_host(heap) {
                // It is not the last there.
                heaps.leave(heap);
                self.enter(&mut heaps, heap);
            }
        }
    }

    /// Gives the thread a host.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's, is in the list of all, and has no host.
    unsafe fn enter(&self, heaps: &mut Heaps, heap: NonNull<ThreadHeap>) {
        let hosts = heaps.host_count();
        // SAFETY: the caller's promise.
        unsafe {
            // Under the lock of the lists: a last guest who leaves meanwhile would say the opposite later.
            if heaps.enter(heap, self.most_hosts()) {
                self.set_idle(heap, false);
            }
        }
        if heaps.host_count() != hosts {
            self.processors.forget();
        }
    }

    fn new_heap(&self, heaps: &mut Heaps) -> Option<NonNull<ThreadHeap>> {
        let bytes = size_of::<ThreadHeap>();
        let memory = self.structure(bytes)?;
        // SAFETY: the memory is new, large enough, and aligned to its size or a page.
        let heap = unsafe { ThreadHeap::write(memory, self.budget.load(Relaxed)) };
        // SAFETY: the heap was just made, and is in no list.
        unsafe { heaps.add(heap) };
        Some(heap)
    }

    /// Takes the heap of a thread that ends: its blocks go back; its slabs, if no other thread uses them, to where
    /// others find them.
    ///
    /// # Safety
    ///
    /// No thread uses the heap any longer: its own has ended, or is the calling one.
    pub unsafe fn detach(&self, heap: NonNull<ThreadHeap>) {
        // SAFETY: the caller's promise.
        unsafe {
            self.empty_quarantine(heap);
            self.empty_magazines(heap, true);
            self.empty_depot(heap);
            (*heap.as_ptr()).budget = self.budget.load(Relaxed);
            let mut heaps = self.heaps.lock();
            let alone = heaps.leave(heap);
            if alone {
                self.set_idle(heap, true);
            }
            drop(heaps);
            if alone {
                self.evacuate_all(ThreadHeap::bins_of(heap));
            }
        }
        // SAFETY: the heap is in the list of all, and the calling thread was the last to use it.
        unsafe { self.heaps.lock().put_idle(heap) };
        // Relaxed: who waits for the last one to end reads the count of that.
        if self.threads.fetch_sub(1, Relaxed) == 1 {
            self.silences.advance();
        }
        self.tick();
    }

    /// Says whether a heap's host is without guests.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's, and the lists are locked.
    unsafe fn set_idle(&self, heap: NonNull<ThreadHeap>, idle: bool) {
        // SAFETY: the caller's promise.
        for bin in unsafe { ThreadHeap::bins_of(heap) } {
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
                self.empty_magazine(heap, class);
                if discard {
                    let place = heap.as_ptr();
                    let magazine = &mut (*place).magazines[number];
                    magazine.discard(&(*place).front, class, &mut (*place).metadata);
                    (*place).front.set_own(class, 0, 0);
                }
            }
        }
        // SAFETY: the caller's promise.
        unsafe { self.empty_coalescer(heap) };
    }
}
