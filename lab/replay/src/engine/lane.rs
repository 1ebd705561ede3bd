//! The engine's records of the threads of a replay, which it starts and joins.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;

use super::Replay;
use super::gate::Gate;
use super::heap::Heap;
use super::stop::{MACHINE, stop};
use crate::program::WORD;

/// Size of a thread's stack in bytes. Includes room for the thread-local data of allocators, which
/// is stored there, too.
const STACK: usize = 1 << 20;

/// The engine's record of a thread, in cache lines of its own.
#[repr(C, align(128))]
pub(super) struct Lane {
    pub(super) gate: Gate,
    /// Offset of the thread's first operation, in words.
    pub(super) first: u64,
    thread: libc::pthread_t,
    pub(super) replay: *const c_void,
    pub(super) number: u32,
}

/// Fills the lanes from the table of threads.
///
/// # Safety
/// The program has a table of `threads` threads at the offset `table`, in words. The replay has
/// `threads` lanes, and nothing else uses them.
pub(super) unsafe fn fill<H: Heap>(replay: &Replay<'_, H>, table: u64, threads: u32) {
    replay.program.load(table * WORD, u64::from(threads) * WORD);
    for number in 0..threads {
        // SAFETY: the table has an entry for each thread, by this function's contract.
        let first = unsafe {
            let table = replay.program.place().cast::<u64>().add(table as usize);
            table.add(number as usize).read()
        };
        let lane = Lane {
            gate: Gate::default(),
            first,
            thread: 0,
            replay: ptr::from_ref(replay).cast(),
            number,
        };
        // SAFETY: there is a lane for each thread, which nothing else uses, by this function's
        // contract.
        unsafe { replay.lanes.add(number as usize).write(lane) };
    }
    replay
        .program
        .release(table * WORD, u64::from(threads) * WORD);
}

/// Starts a thread.
///
/// # Safety
/// The lane exists, and its thread was not started. Only the replay's first thread calls this
/// function, and it joins the thread before the replay ends.
pub(super) unsafe fn start<H: Heap>(replay: &Replay<'_, H>, number: u32) {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: the attributes are initialised before they are used, and destroyed after. By this
    // function's contract the lane exists and outlives its thread. Only the first thread, which
    // calls this function and `join`, uses the lane's field `thread`.
    let error = unsafe {
        let lane = replay.lanes.add(number as usize);
        libc::pthread_attr_init(attributes.as_mut_ptr());
        libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), STACK);
        let thread = &raw mut (*lane).thread;
        let error = libc::pthread_create(thread, attributes.as_ptr(), replay.entry, lane.cast());
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        error
    };
    if error != 0 {
        let why = std::io::Error::from_raw_os_error(error);
        let code = why.raw_os_error().unwrap_or(0);
        stop(
            MACHINE,
            format_args!("cannot start thread {number} of the trace (error {code})"),
        );
    }
}

/// Waits for the end of a thread.
///
/// # Safety
/// The thread was started, and no other call waited for its end. Only the replay's first thread
/// calls this function.
pub(super) unsafe fn join<H: Heap>(replay: &Replay<'_, H>, number: u32) {
    // SAFETY: by this function's contract the lane holds a thread that can be joined.
    unsafe {
        let thread = (*replay.lanes.add(number as usize)).thread;
        libc::pthread_join(thread, ptr::null_mut());
    }
}
