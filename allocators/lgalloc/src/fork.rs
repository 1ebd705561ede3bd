//! Fork handlers. They hold the pool's locks during a fork. In the child, they remove the owners of
//! the other threads' caches, and recount the bytes that count against the cap.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::registry::{CLEAN, SHARED};
use crate::{thread_slot, worker};

extern "C" fn prepare() {
    // The order of the two locks does not matter, because no other code holds both.
    SHARED.dirty.hold_for_fork();
    CLEAN.hold_for_fork();
}

extern "C" fn parent() {
    // SAFETY: `prepare` took both locks on this thread, or in the child on the thread of which this
    // one is the copy. No guard of them is alive.
    unsafe {
        CLEAN.release_after_fork();
        SHARED.dirty.release_after_fork();
    }
}

extern "C" fn child() {
    // The locks can be released before the recount, because no other thread exists that could take
    // them.
    parent();
    SHARED.outlive_fork(thread_slot::own_slot());
    // The worker does not exist in the child. The next free of this thread takes the slow path,
    // which starts a new worker if one is wanted.
    worker::forget();
}

/// Registers the fork handlers. Only the first call does so.
pub fn install() {
    static DONE: AtomicBool = AtomicBool::new(false);
    // Relaxed: only one thread's swap returns false, and the flag publishes no other memory.
    if !DONE.load(Relaxed) && !DONE.swap(true, Relaxed) {
        // SAFETY: the handlers are functions that are never unloaded. If the system refuses them,
        // forks are not protected.
        unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) };
    }
}
