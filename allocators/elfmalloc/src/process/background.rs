//! Background thread that purges while all other threads are silent, if the settings ask for it.
//!
//! A thread that allocates starts it. It sleeps most of the time, and longer if there was little to
//! purge recently. It ends when no other thread has a heap; the last one wakes it for that.
//! Otherwise a process whose main thread ended before others would end late, or never.

use core::ffi::c_void;
use core::ptr::null_mut;
use heapdrome_pages::atomic::{
    AtomicBool,
    Ordering::{AcqRel, Relaxed, Release},
};

use heapdrome_malloc_abi::enter;
use heapdrome_pages::system::start_thread;

use super::{Elfmalloc, HEAPS};

/// Number of rounds without anything to purge that each double the sleep. Further ones do not.
const ROUNDS: u32 = 4;

static WANTED: AtomicBool = AtomicBool::new(false);
static RUNNING: AtomicBool = AtomicBool::new(false);

/// Sets whether the background thread is wanted.
pub(crate) fn want(wanted: bool) {
    // Relaxed: no other memory depends on this flag.
    WANTED.store(wanted, Relaxed);
}

/// Starts the thread if it is wanted and not running. This may allocate, so the caller must have a
/// heap, hold no lock and be in the middle of no operation.
#[inline]
pub(crate) fn start_if_wanted() {
    // Relaxed: no other memory depends on the flag. AcqRel: pairs with the release in `run`, so
    // that the work of an earlier thread is done.
    if WANTED.load(Relaxed) && !RUNNING.load(Relaxed) && !RUNNING.swap(true, AcqRel) {
        // If the thread cannot be created, leave `RUNNING` set so that later slow paths do not
        // retry.
        start_thread(run);
    }
}

/// Records, in the child of a fork, that the thread does not exist there.
pub(crate) fn forked() {
    RUNNING.store(false, Relaxed);
}

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
    // Release: pairs with the swap of the thread that starts the next one.
    RUNNING.store(false, Release);
    null_mut()
}
