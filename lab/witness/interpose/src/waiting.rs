//! Waits for the collector when a thread's ring of entries or of stacks is full.

use core::sync::atomic::Ordering;

use crate::clock::clock;
use crate::kernel;
use crate::own::{NAMESPACE, OVER, control, give_up, is_sandboxed};
use crate::ring::{Control, Ring};
use crate::thread::thread;

/// Duration of a pause while a ring is full, in nanoseconds.
const PAUSE: u64 = 50_000;
/// Number of pauses without a beat after which recording stops, because the collector seems dead:
/// about ten seconds.
const PATIENCE: u32 = 100_000;
/// Number of iterations of a spin loop that replace a pause where system calls are forbidden.
const TURNS: u32 = 2_000;
/// Number of pauses between two checks that the collector is alive.
const LOOK_AT_COLLECTOR: u32 = 1_000;

/// Waits until the entry at this index is free. If the recording is over or the collector seems
/// dead, makes this process stop recording, and returns false.
#[cold]
pub fn wait(ring: &Ring, index: u64) -> bool {
    let limit = ring.limit();
    if index < limit {
        thread().limit.set(limit);
        return true;
    }
    if pause_until(ring, &|| index < ring.limit()) {
        thread().limit.set(ring.limit());
        return true;
    }
    give_up();
    false
}

/// Waits until the collector has made room in the calling thread's ring of stacks. If the recording
/// is over or the collector seems dead, makes this process stop recording, and returns false.
/// `ring` is the thread's ring of entries.
#[cold]
pub fn wait_until(ring: &Ring, has_room: &dyn Fn() -> bool) -> bool {
    let done = pause_until(ring, has_room);
    if !done {
        give_up();
    }
    done
}

fn pause_until(ring: &Ring, has_room: &dyn Fn() -> bool) -> bool {
    let Some(control) = control() else {
        return false;
    };
    let began = clock();
    let mut beat = control.beat.load(Ordering::Relaxed);
    let (mut pauses, mut silent) = (0_u32, 0);
    while !has_room() && !OVER.load(Ordering::Relaxed) {
        let over = control.closed.load(Ordering::Relaxed) | ring.abandoned.load(Ordering::Relaxed);
        if over != 0 || silent > PATIENCE {
            return false;
        }
        pauses += 1;
        if pauses % LOOK_AT_COLLECTOR == 0 && collector_has_ended(control) {
            return false;
        }
        let now = control.beat.load(Ordering::Relaxed);
        silent = if now == beat { silent + 1 } else { 0 };
        beat = now;
        pause();
    }
    let waited = clock().saturating_sub(began);
    ring.waited.fetch_add(waited, Ordering::Relaxed);
    if !is_sandboxed() {
        let slept = &thread().slept;
        slept.set(slept.get().saturating_add(waited));
    }
    !OVER.load(Ordering::Relaxed)
}

fn pause() {
    if is_sandboxed() {
        (0..TURNS).for_each(|_| core::hint::spin_loop());
    } else {
        kernel::sleep(PAUSE);
    }
}

fn collector_has_ended(control: &Control) -> bool {
    let namespace = control.namespace.load(Ordering::Relaxed);
    if namespace == 0 || namespace != NAMESPACE.load(Ordering::Relaxed) {
        // The collector's process ID may not be valid in this namespace. If the collector has
        // ended, its beat stops, which `silent` counts.
        return false;
    }
    !is_sandboxed() && kernel::lacks_process(control.collector.load(Ordering::Relaxed))
}
