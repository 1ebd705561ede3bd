//! A fork finds the pool at rest; in the child the caches of the other threads have no owner.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use heapdrome_pages::{fork_begins, fork_ended};

use crate::pool::CLEAN;
use crate::registry::SHARED;
use crate::{thread, worker};

extern "C" fn prepare() {
    // In either order: nobody holds both.
    SHARED.dirty.hold_for_fork();
    CLEAN.hold_for_fork();
    fork_begins();
}

extern "C" fn parent() {
    fork_ended();
    // SAFETY: `prepare` took both locks on this thread; nobody holds a guard of them.
    unsafe {
        CLEAN.release_after_fork();
        SHARED.dirty.release_after_fork();
    }
}

extern "C" fn child() {
    let own = thread::own_slot();
    for slot in SHARED.claimed() {
        // Regions that their threads kept stay where they are: to be stolen, or for the next owner.
        if !own.is_some_and(|own| std::ptr::eq(own, slot)) {
            slot.abandon();
        }
    }
    // The worker did not come along. What this thread frees next finds no lease, takes the slow path,
    // and there a worker is started if one is wanted.
    if let Some(slot) = own {
        slot.end_lease(&SHARED.cap);
    }
    worker::forget();
    parent();
}

/// Registers the handlers, once.
pub fn install() {
    static DONE: AtomicBool = AtomicBool::new(false);
    // Relaxed: whoever sees false first registers; nothing is published by it.
    if !DONE.load(Relaxed) && !DONE.swap(true, Relaxed) {
        // SAFETY: the handlers are functions that live as long as the program. A refusal leaves a
        // program without them, as one that never forks.
        unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) };
    }
}
