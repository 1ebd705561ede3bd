//! Count of the bytes that the cap on dirty memory limits: dirty bytes, and bytes that caches have
//! borrowed in advance.

use core::sync::atomic::Ordering::Relaxed;

use crate::sync::AtomicUsize;

/// Number of bytes that count against the cap on dirty memory.
#[derive(Debug)]
pub struct Cap {
    pub(crate) held: AtomicUsize,
}

impl Cap {
    /// Adds `bytes` to the count, unless the sum would exceed `most`. Returns whether they were
    /// added.
    pub fn lease(&self, bytes: usize, most: usize) -> bool {
        // Relaxed: no other memory depends on this count. The pool's lock, or the slots, order the
        // handover of regions.
        self.held
            .fetch_update(Relaxed, Relaxed, |held| {
                held.checked_add(bytes).filter(|sum| *sum <= most)
            })
            .is_ok()
    }

    /// Subtracts bytes that the count contains.
    pub fn unlease(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Relaxed);
    }

    /// Adds `bytes` unconditionally.
    pub fn admit(&self, bytes: usize) {
        self.held.fetch_add(bytes, Relaxed);
    }

    /// Replaces the count. No other thread may change it at the same time.
    pub fn count_anew(&self, bytes: usize) {
        self.held.store(bytes, Relaxed);
    }

    /// Returns the number of counted bytes.
    pub fn held(&self) -> usize {
        self.held.load(Relaxed)
    }
}
