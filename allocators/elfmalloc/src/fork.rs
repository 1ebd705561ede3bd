//! Around a fork every lock is held, so that the child finds nothing half changed.

use core::ptr::{NonNull, null_mut};
use heapdrome_pages::atomic::Ordering::Relaxed;

use heapdrome_pages::{Lock, Pages};

use crate::backend::Backend;
use crate::bin::Bin;
use crate::depot::Depot;
use crate::heap::{Front, ThreadHeap};
use crate::heaps::{AllHeaps, guests_of};
use crate::magazine::Magazine;
use crate::metadata::ThreadMetadata;

impl<P: Pages> Backend<P> {
    /// Takes every lock, in their order.
    pub fn hold_all(&self) {
        self.purging.hold_for_fork();
        self.heaps.hold_for_fork();
        // SAFETY: the lock is held for the fork.
        unsafe { &mut *self.heaps.as_ptr() }.hold();
        self.each_depot(Lock::hold_for_fork);
        self.each_bin(Lock::hold_for_fork);
        self.mapped.hold_for_fork();
        self.pool.hold_for_fork();
        self.metadata.hold_for_fork();
    }

    /// Lets go of every lock that was taken; those of heaps that were made since are none of them.
    ///
    /// # Safety
    ///
    /// The calling thread, or the one that it is a copy of, took them by
    /// [`hold_all`](Self::hold_all).
    pub unsafe fn release_all(&self) {
        // SAFETY: the caller's promise.
        unsafe {
            self.metadata.release_after_fork();
            self.pool.release_after_fork();
            self.mapped.release_after_fork();
            self.each_bin(|bin| bin.release_after_fork());
            self.each_depot(|depot| depot.release_after_fork());
            self.heaps.release_after_fork();
            self.purging.release_after_fork();
        }
    }

    fn each_bin(&self, mut visit: impl FnMut(&Bin)) {
        for heap in self.all_held_heaps() {
            // SAFETY: heaps live for ever, and bins may be used by any thread.
            unsafe { &(*heap.as_ptr()).bins }
                .iter()
                .for_each(&mut visit);
        }
        self.bins.iter().for_each(visit);
    }

    fn each_depot(&self, mut visit: impl FnMut(&Lock<Depot>)) {
        for heap in self.all_held_heaps() {
            // SAFETY: heaps live for ever, and depots may be used by any thread.
            visit(unsafe { &(*heap.as_ptr()).depot });
        }
    }

    fn all_held_heaps(&self) -> AllHeaps {
        // SAFETY: the lock is held for the fork.
        unsafe { &*self.heaps.as_ptr() }.held()
    }

    /// In the child: makes the heaps of threads that do not exist here available to others, and puts back
    /// what they were purging. The blocks in their magazines and quarantines are lost: a thread may have
    /// been moving them when the process forked.
    ///
    /// # Safety
    ///
    /// There is only the calling thread, whose heap is `own`, if it has one.
    pub unsafe fn disown(&self, own: Option<NonNull<ThreadHeap>>) {
        // Relaxed: there is no other thread. The one that was purging is none of this process.
        self.ticking.store(false, Relaxed);
        let mut pool = self.pool.lock();
        pool.put_back_purging();
        // The child's processor time begins anew.
        pool.forget_steps();
        drop(pool);
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
