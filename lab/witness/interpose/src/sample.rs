//! Which requests are recorded, where a recording samples.
//!
//! Sample points are a Poisson process over the bytes that a thread requests. A thread counts down
//! to its next point. Distances have no memory, so a new one is drawn where a request ends.

use crate::exponential::{distance, random};
use crate::rings;
use crate::system;
use crate::thread::{Thread, thread};

/// Counts a request, and returns whether a point falls into it.
pub fn counts(size: u64) -> bool {
    let (thread, size) = (thread(), size.max(1));
    let (left, passed) = thread.until.overflowing_sub(size);
    thread.until = left;
    passed && falls_into(size)
}

/// Whether a point falls into a request that ended the thread's countdown. The countdown of a new
/// thread is zero, which says nothing.
pub fn falls_into(size: u64) -> bool {
    if thread().seed != 0 {
        draw(thread());
        return true;
    }
    // The process is named in the trace, even if no point falls into its requests.
    rings::announce();
    let thread = thread();
    begin(thread);
    let size = size.max(1);
    if thread.until < size {
        draw(thread);
        return true;
    }
    thread.until -= size;
    false
}

/// Begins anew in a child of fork, which must not draw what its parent draws.
pub fn renew() {
    let thread = thread();
    (thread.until, thread.seed) = (0, 0);
}

fn begin(thread: &mut Thread) {
    let place = (&raw const *thread) as u64;
    // Odd, so that no seed is zero. A thread in another process may have the same place.
    let time = match thread.lacks_clock {
        0 => system::ticks(),
        _ => thread.beat,
    };
    thread.seed = (time ^ place.rotate_left(32)) | 1;
    draw(thread);
}

fn draw(thread: &mut Thread) {
    thread.until = distance(random(&mut thread.seed), rings::sample_bytes());
}
