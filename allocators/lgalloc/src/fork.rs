//! A fork finds the pool at rest; in the child the caches of the other threads have no owner, and
//! what is held is counted anew.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::registry::{CLEAN, SHARED};
use crate::{thread_slot, worker};

extern "C" fn prepare() {
    // In either order: nobody holds both.
    SHARED.dirty.hold_for_fork();
    CLEAN.hold_for_fork();
}

extern "C" fn parent() {
    // SAFETY: `prepare` took both locks on this thread; nobody holds a guard of them.
    unsafe {
        CLEAN.release_after_fork();
        SHARED.dirty.release_after_fork();
    }
}

extern "C" fn child() {
    // Nobody else is here to take what is let go of.
    parent();
    SHARED.outlive_fork(thread_slot::own_slot());
    // The worker did not come along either. What this thread frees next takes the slow path, where
    // one is started if it is wanted.
    worker::forget();
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
