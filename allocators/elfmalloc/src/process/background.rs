//! The thread that purges while all others are silent, where it is asked for.
//!
//! It is started by a thread that allocates, and sleeps most of the time, the longer the less there
//! was to purge of late. It ends when no other thread has a heap, and the last one wakes it for
//! that: else a process whose main thread ended before others would end late, or never.

use core::ffi::c_void;
use core::ptr::null_mut;
use heapdrome_pages::atomic::{
    AtomicBool,
    Ordering::{AcqRel, Relaxed, Release},
};

use heapdrome_malloc_abi::enter;
use heapdrome_pages::system::start_thread;

use super::{Elfmalloc, HEAPS};

/// After so many rounds without anything to purge the thread sleeps no longer than before: each
/// doubles it.
const ROUNDS: u32 = 4;

static WANTED: AtomicBool = AtomicBool::new(false);
static RUNNING: AtomicBool = AtomicBool::new(false);

/// Says whether there is to be such a thread.
pub(crate) fn want(wanted: bool) {
    // Relaxed: a flag that stands alone.
    WANTED.store(wanted, Relaxed);
}

/// Starts the thread, if it is wanted and not there. This may allocate: the caller has a heap,
/// holds no lock and is in the midst of nothing.
#[inline]
pub(crate) fn start_if_wanted() {
    // Relaxed: a flag that stands alone. AcqRel: what an earlier thread did is done.
    if WANTED.load(Relaxed) && !RUNNING.load(Relaxed) && !RUNNING.swap(true, AcqRel) {
        // If the thread cannot be created, leave `RUNNING` set so that later slow paths do not
        // retry.
        start_thread(run);
    }
}

/// In the child of a fork there is no such thread.
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
    // Release: pairs with the swap of whoever starts the next.
    RUNNING.store(false, Release);
    null_mut()
}
