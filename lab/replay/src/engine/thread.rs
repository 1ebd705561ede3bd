//! Runs a thread of a replay.

use std::ffi::c_void;
use std::ptr;

use super::heap::Heap;
use super::lane::Lane;
use super::{Replay, run};
use crate::options::Touch;

/// Runs a thread's operations on the calling thread.
///
/// # Safety
/// `compile` wrote the program. The program has this thread, and no other call runs the thread.
pub(super) unsafe fn follow<H: Heap>(replay: &Replay<'_, H>, number: u32) {
    // SAFETY: the lane exists, by this function's contract, and `first` does not change.
    let first = unsafe { (*replay.lanes.add(number as usize)).first };
    replay.held.grow(run::FIRST_PIECE);
    // SAFETY: `compile` wrote the program, by this function's contract, and the thread's operations
    // begin at `first`. The constant is the replay's `touch`.
    unsafe {
        let first = replay.program.place().cast::<u64>().add(first as usize);
        match replay.touch {
            Touch::None => run::run::<H, { Touch::None as u8 }>(replay, number, first),
            Touch::First => run::run::<H, { Touch::First as u8 }>(replay, number, first),
            Touch::Pages => run::run::<H, { Touch::Pages as u8 }>(replay, number, first),
            Touch::All => run::run::<H, { Touch::All as u8 }>(replay, number, first),
            Touch::Check => run::run::<H, { Touch::Check as u8 }>(replay, number, first),
        }
    }
}

/// Runs a thread of the replay, and returns null. `lane` is the lane of the thread.
pub(super) extern "C" fn entry<H: Heap>(lane: *mut c_void) -> *mut c_void {
    // SAFETY: `lane::start` passed a lane. Its fields that are read here do not change, and its
    // replay waits for this thread's end. The replay has the type `H`, because it contains this
    // function as its entry.
    let (replay, number) = unsafe {
        let lane = lane.cast::<Lane>();
        (&*(*lane).replay.cast::<Replay<'_, H>>(), (*lane).number)
    };
    // SAFETY: the replay's program was written by `compile`. It has this thread and starts it once.
    unsafe { follow(replay, number) };
    ptr::null_mut()
}
