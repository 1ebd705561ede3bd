//! What happens to the back-end in the child of a fork. No thread was changing it when the process forked: the
//! [gate](heapdrome_malloc_abi::fork_gate) sees to that.

use core::ptr::{NonNull, null_mut};
use heapdrome_pages::atomic::Ordering::Relaxed;

use heapdrome_pages::Pages;

use crate::heap::backend::Backend;
use crate::heap::front::{Front, ThreadHeap};
use crate::heap::heaps::guests_of;
use crate::heap::magazine::Magazine;
use crate::units::metadata::ThreadMetadata;

impl<P: Pages> Backend<P> {
    /// In the child: frees every lock. A thread of the parent may have held it to read what it guards.
    ///
    /// # Safety
    ///
    /// There is only the calling thread, and it has no guard of a lock.
    pub unsafe fn free_locks(&self) {
        // SAFETY: the calling thread is alone and has no guard. A thread of the parent that held a lock changed nothing
        // under it, since it was on no slow path.
        unsafe {
            self.metadata.free_in_child();
            self.pool.free_in_child();
            self.mapped.free_in_child();
            self.purging.free_in_child();
            self.bins.iter().for_each(|bin| bin.free_in_child());
            self.heaps.free_in_child();
            for heap in self.all_heaps() {
                let (bins, depot) = (&(*heap.as_ptr()).bins, &(*heap.as_ptr()).depot);
                bins.iter().for_each(|bin| bin.free_in_child());
                depot.free_in_child();
            }
        }
    }

    /// In the child: makes the heaps of threads that do not exist here available to others. The blocks in their
    /// magazines and quarantines are lost: fast paths pass by the gate, and a thread may have been on one when the
    /// process forked.
    ///
    /// # Safety
    ///
    /// There is only the calling thread, whose heap is `own`, if it has one.
    pub unsafe fn disown(&self, own: Option<NonNull<ThreadHeap>>) {
        // The child's processor time begins anew.
        self.pool.lock().forget_steps();
        let mut heaps = self.heaps.lock();
        let mut idle = null_mut();
        for heap in heaps.all() {
            if Some(heap) == own {
                continue;
            }
            // SAFETY: no thread uses the heap, nor the old list of idle ones before there is a new one.
            unsafe {
                self.forget_owner(heap);
                (*heap.as_ptr()).next_idle = idle;
            }
            idle = heap.as_ptr();
        }
        heaps.set_idle(idle);
        heaps.forget_guests(own);
        let all = heaps.all();
        // Slabs on their way to the pool may lead to a look at all heaps.
        drop(heaps);
        // Relaxed: a number that stands alone.
        self.threads.store(usize::from(own.is_some()), Relaxed);
        for heap in all {
            // SAFETY: heaps live for ever, bins may be used by any thread, and there is no other.
            let bins = unsafe { &(*heap.as_ptr()).bins };
            if guests_of(heap.as_ptr()) == 0 {
                bins.iter().for_each(|bin| bin.lock().set_idle(true));
                self.evacuate_all(bins);
            }
        }
    }

    /// Makes a heap what it is for a thread that begins.
    ///
    /// # Safety
    ///
    /// No thread uses the heap.
    unsafe fn forget_owner(&self, heap: NonNull<ThreadHeap>) {
        // SAFETY: the caller's promise.
        unsafe {
            let place = heap.as_ptr();
            (&raw mut (*place).front).write(Front::new());
            (*place).magazines = [Magazine::NONE; _];
            (*place).metadata = ThreadMetadata::new();
            // Relaxed: there is no other thread.
            (*place)
                .cached
                .iter()
                .for_each(|count| count.store(0, Relaxed));
            if let Some(mut coalescer) = NonNull::new((*place).coalescer) {
                coalescer.as_mut().forget();
            }
            if let Some(mut quarantine) = NonNull::new((*place).quarantine) {
                quarantine.as_mut().empty(|_| ());
            }
            (*place).budget = self.budget.load(Relaxed);
        }
    }
}
