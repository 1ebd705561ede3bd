//! Executable invariants of the whole: run by tests after every generated program.

use heapdrome_pages::Pages;
use heapdrome_pages::atomic::Ordering::Relaxed;

use crate::heap::backend::Backend;

impl<P: Pages> Backend<P> {
    /// Asserts what must hold whenever no thread is in the allocator: each bin's slabs are where and
    /// as they should be, and the pool's counts fit its maps.
    ///
    /// # Panics
    ///
    /// Where something does not hold.
    pub fn check(&self) {
        for bin in &self.bins {
            bin.lock().check();
        }
        for heap in self.all_heaps() {
            // SAFETY: heaps live for ever; bins and depots may be used by any thread.
            unsafe {
                // Relaxed: no thread is in the allocator.
                let is_host = (*heap.as_ptr()).is_host.load(Relaxed);
                for bin in &(*heap.as_ptr()).bins {
                    bin.lock().check();
                    assert!(is_host || bin.lock().slabs == 0, "slabs of no host");
                }
                (*heap.as_ptr()).depot.lock().check();
            }
        }
        self.pool.lock().check();
    }

    /// How many slabs there are, of all bins.
    #[must_use]
    pub fn slabs(&self) -> usize {
        let mut count: usize = self.bins.iter().map(|bin| bin.lock().slabs as usize).sum();
        for host in self.all_hosts() {
            // SAFETY: as above.
            let bins = unsafe { &(*host.as_ptr()).bins };
            count += bins
                .iter()
                .map(|bin| bin.lock().slabs as usize)
                .sum::<usize>();
        }
        count
    }
}
