//! Executable invariants of the whole: run by tests after every generated program.

use heapdrome_pages::Pages;

use crate::backend::Backend;
use crate::heap::ThreadHeap;

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
        self.heaps.lock().each(|heap| {
            // SAFETY: heaps live for ever, and bins may be used by any thread.
            for bin in unsafe { &(*heap.as_ptr()).bins } {
                bin.lock().check();
            }
        });
        self.pool.lock().check();
    }

    /// How many slabs there are, of all bins.
    #[must_use]
    pub fn slabs(&self) -> usize {
        let mut count: usize = self.bins.iter().map(|bin| bin.lock().slabs as usize).sum();
        self.heaps.lock().each(|heap| {
            // SAFETY: as above.
            let heap: &ThreadHeap = unsafe { heap.as_ref() };
            count += heap
                .bins
                .iter()
                .map(|bin| bin.lock().slabs as usize)
                .sum::<usize>();
        });
        count
    }
}
