//! The slot that a thread owns: its cache of free regions.

use std::cell::Cell;

use crate::registry::SHARED;
use crate::slot::Slot;

thread_local! {
    /// Slot of the thread. It has no destructor, so it may be read at any time of a thread's life.
    static SLOT: Cell<Option<&'static Slot>> = const { Cell::new(None) };
    /// Whether the thread has asked for a slot.
    static ASKED: Cell<bool> = const { Cell::new(false) };
    /// Guard that gives the slot up when the thread ends.
    static END: End = const { End };
}

struct End;

impl Drop for End {
    fn drop(&mut self) {
        if let Some(slot) = SLOT.take() {
            SHARED.leave(slot);
        }
    }
}

/// Returns the slot of this thread, if it has one.
#[inline]
pub fn own_slot() -> Option<&'static Slot> {
    SLOT.get()
}

/// Returns the slot of this thread, after claiming one if the thread has never tried to.
pub fn slot_or_join() -> Option<&'static Slot> {
    // A thread past its destructors has no `END` that could give a slot up again.
    if !ASKED.replace(true) && END.try_with(|_| ()).is_ok() {
        SLOT.set(SHARED.claim());
    }
    own_slot()
}
