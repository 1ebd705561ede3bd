//! Handlers of forks. A fork finds the pool at rest. In the child, the caches of the other threads
//! have no owner, and the held bytes are counted again.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::registry::{CLEAN, SHARED};
use crate::{thread_slot, worker};

extern "C" fn prepare() {
    // The order does not matter, since no thread holds both locks.
    SHARED.dirty.hold_for_fork();
    CLEAN.hold_for_fork();
}

extern "C" fn parent() {
    // SAFETY: `prepare` took both locks on this thread; no guard of them is alive.
    unsafe {
        CLEAN.release_after_fork();
        SHARED.dirty.release_after_fork();
    }
}

extern "C" fn child() {
    // There is no other thread that could take what is released.
    parent();
    SHARED.outlive_fork(thread_slot::own_slot());
    // The worker does not exist in the child either. The next free of this thread takes the slow
    // path, which starts one if it is wanted.
    worker::forget();
}

/// Registers the handlers, once.
pub fn install() {
    static DONE: AtomicBool = AtomicBool::new(false);
    // Relaxed: the thread that sees false first registers, and nothing is published by the flag.
    if !DONE.load(Relaxed) && !DONE.swap(true, Relaxed) {
        // SAFETY: the handlers are functions that live as long as the program. If the system
        // refuses them, forks are unprotected, which harms only a program that forks.
        unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) };
    }
}
