//! One cap on what may be dirty, from which caches borrow.

use core::sync::atomic::Ordering::Relaxed;

use crate::sync::AtomicUsize;

/// Bytes that are spoken for.
#[derive(Debug)]
pub struct Cap {
    pub(crate) held: AtomicUsize,
}

impl Cap {
    /// Adds to what is held, unless that would exceed `most`; whether it was added.
    pub fn lease(&self, bytes: usize, most: usize) -> bool {
        // Relaxed: a count; the regions themselves pass through the pool's lock or the slots.
        self.held
            .fetch_update(Relaxed, Relaxed, |held| {
                held.checked_add(bytes).filter(|sum| *sum <= most)
            })
            .is_ok()
    }

    /// Takes back what `lease` added.
    pub fn unlease(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Relaxed);
    }

    /// Adds what is there already, whatever the cap says.
    pub fn admit(&self, bytes: usize) {
        self.held.fetch_add(bytes, Relaxed);
    }

    /// Replaces the count, where nobody else can count meanwhile.
    pub fn count_anew(&self, bytes: usize) {
        self.held.store(bytes, Relaxed);
    }

    /// Bytes that are spoken for.
    pub fn held(&self) -> usize {
        self.held.load(Relaxed)
    }
}
