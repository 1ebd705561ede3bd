//! Background thread that purges regions that have long been free. Runs only if the settings enable
//! it. It blocks all signals, so that the program's threads handle them.

use core::ffi::c_void;
use core::sync::atomic::{
    AtomicBool,
    Ordering::{AcqRel, Relaxed, Release},
};
use std::time::Duration;

use heapdrome_pages::system;

use crate::{config, pool};

static RUNNING: AtomicBool = AtomicBool::new(false);

/// Records that no worker exists: in the child of a fork, when the worker ends, or if it cannot be
/// started. The next slow path then tries to start one if the settings enable it.
pub fn forget() {
    // Release: pairs with the swap in `start_if_wanted`. The old worker's last purge, if any, then
    // precedes the new worker's start.
    RUNNING.store(false, Release);
}

/// Starts the worker if the settings enable it and it is not running.
pub fn start_if_wanted() {
    // Relaxed: a thread that sees an old value starts the worker at a later call.
    if config::worker_interval_ms() == 0 || RUNNING.load(Relaxed) {
        return;
    }
    // Only one thread's swap returns false. AcqRel: the acquire pairs with the release in `forget`.
    if RUNNING.swap(true, AcqRel) {
        return;
    }
    if !system::start_thread(run) {
        forget();
    }
}

extern "C" fn run(_: *mut c_void) -> *mut c_void {
    // SAFETY: the name is NUL-terminated, and the kernel copies it.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"lgalloc".as_ptr()) };
    loop {
        let interval = config::worker_interval_ms();
        if interval == 0 {
            forget();
            return core::ptr::null_mut();
        }
        std::thread::sleep(Duration::from_millis(interval));
        pool::purge_older(interval);
    }
}
