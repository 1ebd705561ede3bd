//! The thread that purges while all others are silent, where it is asked for.
//!
//! It is started by a thread that allocates, sleeps most of the time, and ends when nothing was left to purge
//! for a while: a process that stays silent has no thread of ours in the end.

use core::ffi::c_void;
use core::ptr::null_mut;
use heapdrome_pages::atomic::{
    AtomicBool,
    Ordering::{AcqRel, Relaxed, Release},
};

use heapdrome_pages::system::{sleep_milliseconds, start_thread};

use crate::elfmalloc::BACKEND;

/// Rounds without anything to purge after which the thread ends.
const ROUNDS: u32 = 8;

static WANTED: AtomicBool = AtomicBool::new(false);
static RUNNING: AtomicBool = AtomicBool::new(false);

/// Says whether there is to be such a thread.
pub(crate) fn want(wanted: bool) {
    // Relaxed: a flag that stands alone.
    WANTED.store(wanted, Relaxed);
}

/// Starts the thread, if it is wanted and not there. This may allocate: the caller holds no lock and is
/// in the midst of nothing.
#[inline]
pub(crate) fn start_if_wanted() {
    // Relaxed: a flag that stands alone. AcqRel: what an earlier thread did is done.
    if WANTED.load(Relaxed) && !RUNNING.load(Relaxed) && !RUNNING.swap(true, AcqRel) {
        // Where there is no thread to be had now, later slow paths are not to pay for asking again:
        // it counts as there.
        start_thread(run);
    }
}

/// In the child of a fork there is no such thread.
pub(crate) fn forked() {
    RUNNING.store(false, Relaxed);
}

extern "C" fn run(_: *mut c_void) -> *mut c_void {
    let mut silent = 0;
    while silent < ROUNDS {
        // Relaxed: numbers that stand alone.
        sleep_milliseconds(BACKEND.decay.load(Relaxed) / 2 + 1);
        let before = BACKEND.purged.load(Relaxed);
        BACKEND.tick();
        let same = BACKEND.purged.load(Relaxed) == before;
        silent = if same { silent + 1 } else { 0 };
    }
    // Release: pairs with the swap of whoever starts the next.
    RUNNING.store(false, Release);
    null_mut()
}
