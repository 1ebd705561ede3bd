//! Where each entry point passes its calls on.

use core::sync::atomic::{AtomicUsize, Ordering};

use crate::layout::FUNCTIONS;

/// Fields for an entry point, in the order in which its assembly reads it.
#[repr(C)]
pub struct Slot {
    /// Where calls go that are not counted; 0 until the first.
    pub next: AtomicUsize,
    /// Where the object that serves them begins, and how long it is: calls from there are its own
    /// and are not counted.
    pub low: AtomicUsize,
    pub span: AtomicUsize,
    /// Their counter: the first word of a [`Function`]; 0 where they are not counted.
    pub counter: AtomicUsize,
    /// Where counted calls go: there as well, or to the function that follows blocks.
    pub counted_next: AtomicUsize,
    /// In recording mode: the function that records a call before it is passed on, or 0.
    pub before: AtomicUsize,
    /// In recording mode: the function that records a call once it has returned.
    pub after: AtomicUsize,
    /// The function that serves the calls.
    pub served: AtomicUsize,
}

impl Slot {
    /// The function that serves the calls.
    pub fn target(&self) -> usize {
        self.served.load(Ordering::Relaxed)
    }
}

/// Distance of two slots in bytes.
pub const SLOT_BYTES: usize = size_of::<Slot>();

/// The place in [`FUNCTIONS`] of the function that has this slot.
pub fn index(slot: *const Slot) -> usize {
    (slot as usize - (&raw const SLOTS) as usize) / SLOT_BYTES
}

/// One slot for each function.
pub static SLOTS: [Slot; FUNCTIONS.len()] = [const {
    Slot {
        next: AtomicUsize::new(0),
        low: AtomicUsize::new(0),
        span: AtomicUsize::new(0),
        counter: AtomicUsize::new(0),
        counted_next: AtomicUsize::new(0),
        before: AtomicUsize::new(0),
        after: AtomicUsize::new(0),
        served: AtomicUsize::new(0),
    }
}; FUNCTIONS.len()];
