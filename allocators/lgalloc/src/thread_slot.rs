//! Slot of the calling thread: its cache of free regions.

use std::cell::Cell;

use crate::registry::SHARED;
use crate::slot::Slot;

thread_local! {
    /// Slot of the thread. It has no destructor, so a thread can read it at any time.
    static SLOT: Cell<Option<&'static Slot>> = const { Cell::new(None) };
    /// Whether the thread has tried to claim a slot.
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

/// Returns the slot of the calling thread, if it has one.
#[inline]
pub fn own_slot() -> Option<&'static Slot> {
    SLOT.get()
}

/// Returns the slot of the calling thread. If the thread has never tried to claim a slot, claims
/// one first.
pub fn slot_or_join() -> Option<&'static Slot> {
    // After its destructors have run, a thread has no `END` that could give the slot up, so it gets
    // no slot.
    if !ASKED.replace(true) && END.try_with(|_| ()).is_ok() {
        SLOT.set(SHARED.claim());
    }
    own_slot()
}
