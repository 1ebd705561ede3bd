//! Background thread that purges while the program is idle, if the settings enable it.
//!
//! An allocating thread starts the background thread. The background thread sleeps most of the
//! time, and longer while there is nothing to purge. When the last other thread with a heap ends,
//! it wakes the background thread, which then ends, too. Otherwise the background thread could
//! delay or prevent the end of a process whose main thread has called `pthread_exit`.

use core::ffi::c_void;
use core::ptr::null_mut;
use heapdrome_pages::atomic::{
    AtomicBool,
    Ordering::{AcqRel, Relaxed, Release},
};

use heapdrome_malloc_abi::enter;
use heapdrome_pages::system::start_thread;

use super::{Elfmalloc, HEAPS};

/// Maximum number of times that the sleep doubles. Each round without a purge doubles the sleep.
const ROUNDS: u32 = 4;

static WANTED: AtomicBool = AtomicBool::new(false);
static RUNNING: AtomicBool = AtomicBool::new(false);

/// Sets whether the background thread is wanted.
pub(crate) fn want(wanted: bool) {
    // Relaxed: no other memory depends on this flag.
    WANTED.store(wanted, Relaxed);
}

/// Starts the thread if it is wanted and not running. This may allocate, so the caller must have a
/// heap, hold no lock, and not be in the middle of an operation.
#[inline]
pub(crate) fn start_if_wanted() {
    // Relaxed: `WANTED` guards no memory, and the load of `RUNNING` only avoids needless swaps; the
    // swap decides. AcqRel: pairs with the release in `run`, so that the new thread sees the writes
    // of the previous background thread.
    if WANTED.load(Relaxed) && !RUNNING.load(Relaxed) && !RUNNING.swap(true, AcqRel) {
        // If the thread cannot be created, leave `RUNNING` set so that later slow paths do not
        // retry.
        start_thread(run);
    }
}

/// Records in the child of a fork that the background thread does not exist there.
pub(crate) fn forked() {
    RUNNING.store(false, Relaxed);
}

#[cold]
extern "C" fn run(_: *mut c_void) -> *mut c_void {
    let mut silent = 0;
    let half = || HEAPS.decay() / 2 + 1;
    while HEAPS.rest(half().saturating_mul(1 << silent)) {
        let before = HEAPS.memory().purges();
        if let Some(_inside) = enter::<Elfmalloc>() {
            HEAPS.tick();
        }
        let same = HEAPS.memory().purges() == before;
        silent = if same { (silent + 1).min(ROUNDS) } else { 0 };
    }
    // Release: pairs with the swap in `start_if_wanted`.
    RUNNING.store(false, Release);
    null_mut()
}
