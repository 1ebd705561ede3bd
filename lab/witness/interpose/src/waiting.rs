//! How a thread waits for the collector when its ring is full.

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::Ordering;

use crate::own::{NAMESPACE, OVER, control, give_up};
use crate::ring::{Control, Ring};
use crate::system;
use crate::thread::thread;

/// Nanoseconds of a pause while a ring is full.
const PAUSE: i64 = 50_000;
/// After this many pauses without a beat the collector is given up: about ten seconds.
const PATIENCE: u32 = 100_000;
/// Pauses between two looks at whether the collector lives.
const LOOK_AT_COLLECTOR: u32 = 1_000;

/// Waits until an entry is free; false if the recording is over.
#[cold]
pub fn wait(ring: &Ring, index: u64) -> bool {
    let limit = ring.limit();
    if index < limit {
        thread().limit = limit;
        return true;
    }
    // SAFETY: every thread has an errno.
    let errno = unsafe { *system::__errno_location() };
    let done = pause_until(ring, &|| index < ring.limit());
    // SAFETY: as above.
    unsafe { *system::__errno_location() = errno };
    if done {
        thread().limit = ring.limit();
    } else {
        give_up();
    }
    done
}

/// Waits until the collector has made room in the calling thread's ring of stacks; false if the
/// recording is over.
#[cold]
pub fn wait_until(ring: &Ring, has_room: &dyn Fn() -> bool) -> bool {
    // SAFETY: every thread has an errno.
    unsafe {
        let errno = *system::__errno_location();
        let done = pause_until(ring, has_room);
        *system::__errno_location() = errno;
        if !done {
            give_up();
        }
        done
    }
}

fn pause_until(ring: &Ring, has_room: &dyn Fn() -> bool) -> bool {
    let Some(control) = control() else {
        return false;
    };
    let began = system::now();
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
        let pause = [0, PAUSE];
        // SAFETY: the kernel reads two words and writes none.
        unsafe {
            system::syscall(system::SYS_NANOSLEEP, pause.as_ptr(), null_mut::<c_void>());
        }
    }
    ring.waited
        .fetch_add(system::now() - began, Ordering::Relaxed);
    !OVER.load(Ordering::Relaxed)
}

fn collector_has_ended(control: &Control) -> bool {
    const ESRCH: c_int = 3;
    let namespace = control.namespace.load(Ordering::Relaxed);
    if namespace == 0 || namespace != NAMESPACE.load(Ordering::Relaxed) {
        // Its number says nothing here; its silence will.
        return false;
    }
    let pid = i64::from(control.collector.load(Ordering::Relaxed));
    // SAFETY: signal 0 is never sent; the caller restores errno.
    unsafe {
        system::syscall(system::SYS_KILL, pid, 0_i64) < 0 && *system::__errno_location() == ESRCH
    }
}
