//! Cap on dirty memory, from which caches borrow.

use core::sync::atomic::Ordering::Relaxed;

use crate::sync::AtomicUsize;

/// Count of bytes that are held.
#[derive(Debug)]
pub struct Cap {
    pub(crate) held: AtomicUsize,
}

impl Cap {
    /// Adds to the held bytes, unless the sum would exceed `most`. Returns whether it did.
    pub fn lease(&self, bytes: usize, most: usize) -> bool {
        // Relaxed: a count. The regions themselves are handed over under the pool's lock, or in the
        // slots.
        self.held
            .fetch_update(Relaxed, Relaxed, |held| {
                held.checked_add(bytes).filter(|sum| *sum <= most)
            })
            .is_ok()
    }

    /// Subtracts bytes that `lease` added.
    pub fn unlease(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Relaxed);
    }

    /// Adds bytes that are already there, whatever the cap.
    pub fn admit(&self, bytes: usize) {
        self.held.fetch_add(bytes, Relaxed);
    }

    /// Replaces the count. No other thread may count at the same time.
    pub fn count_anew(&self, bytes: usize) {
        self.held.store(bytes, Relaxed);
    }

    /// Returns the bytes that are held.
    pub fn held(&self) -> usize {
        self.held.load(Relaxed)
    }
}
