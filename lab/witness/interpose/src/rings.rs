//! Manages the rings of this process: one for each thread that allocates.

use core::ptr::null_mut;
use core::sync::atomic::Ordering;

use crate::clock::{self, clock};
use crate::control;
use crate::folder;
use crate::kernel;
use crate::marks;
use crate::own::{
    ALONE, IMAGE, NAMESPACE, NEW, OVER, OWN, Own, PARENT, SANDBOXED, SHARED, begin_image,
    begin_unknown_image, control, give_up, is_child_of_vfork, is_sandboxed, namespace, own, pid,
    state, tid,
};
use crate::ring::{CONTROL, Control, Event, FAR, LONG, Ring, code};
use crate::ring_supply::{SPARE, begin_thread, make, reuse, take_spare};
use crate::system;
use crate::thread::{Thread, thread};
use crate::timing;
use crate::waiting::wait;

/// Maximum number of later calls that reuse one time stamp while only one thread allocates. Reading
/// the processor's counter takes longer than the rest of a recorded call.
const REUSES: u32 = 7;

/// Number of rings that a process creates before it enters a sandbox.
const SPARES: u32 = 16;

/// Prepares recording. Runs whenever a function is bound, and has no effect once it has succeeded.
pub fn begin() {
    if !OWN.load(Ordering::Acquire).is_null() {
        return;
    }
    let flags = system::MAP_PRIVATE | system::MAP_ANONYMOUS;
    // SAFETY: this function has mapped the page, which no code relies on yet, so it may be advised.
    // The page is only used as an `Own`, for which zeros are valid. If another thread was first, no
    // other thread knows the page, so it may be unmapped.
    unsafe {
        let page = kernel::map(4096, flags, -1);
        let control = folder::map(CONTROL.as_bytes(), false, size_of::<Control>());
        let usable = !page.is_null() && kernel::advise(page, 4096, system::MADV_WIPEONFORK);
        let (true, Some(control)) = (usable, control.map(|it| it.cast::<Control>())) else {
            OVER.store(true, Ordering::Relaxed);
            return;
        };
        SHARED.store(control, Ordering::Release);
        if control::sample_bytes() != 0 && !marks::begin() {
            OVER.store(true, Ordering::Relaxed);
        }
        let first =
            OWN.compare_exchange(null_mut(), page.cast(), Ordering::AcqRel, Ordering::Acquire);
        if first.is_err() {
            kernel::unmap(page, 4096);
        }
        begin_image();
        timing::begin_process(kernel::processor_time());
    }
}

/// Opens a ring if this process has no image yet, so that the collector knows the process.
pub fn announce() {
    if state() == NEW {
        open();
    }
}

/// Returns the ring of the calling thread; `None` if recording is over or no ring can be created.
pub fn current() -> Option<&'static Ring> {
    if (thread().ring.get().is_null() || state() == NEW) && !open() {
        return None;
    }
    // SAFETY: a thread's ring stays mapped until the process ends or executes.
    unsafe { thread().ring.get().as_ref() }
}

/// Records that this process is about to fork, because the child inherits the blocks that are live
/// now.
pub unsafe extern "C" fn before_fork() {
    // Without an image, this process has recorded no block of its own. Its child inherits only
    // blocks that the parent of this process has recorded, so this fork needs no entry.
    if state() == NEW {
        return;
    }
    let now = clock();
    let thread = thread();
    // Thread-local, because other threads may fork concurrently. The child inherits a copy.
    thread.forked.set(now);
    if thread.ring.get().is_null() && !open() {
        return;
    }
    // SAFETY: a thread's ring stays mapped until the process ends or executes.
    let ring = unsafe { &*thread.ring.get() };
    let index = ring.reserve(1);
    if index < thread.limit.get() || wait(ring, index) {
        ring.write_whole(index, code::FORK, 0, now);
    }
}

/// Returns the time stamp of a call. If a block passes from one thread to another, the stamps of
/// both threads' calls have the right order.
///
/// While only one thread allocates, its ring gives the order of the calls. Then up to [`REUSES`]
/// later calls reuse a reading, until the next beat of the collector, unless blocks are sampled.
#[inline]
pub fn stamp(read: fn() -> u64) -> u64 {
    let thread = thread();
    if !thread.ring.get().is_null() && thread.reuses.get() > 0 {
        // SAFETY: a thread gets a ring only after `OWN` and `SHARED` are set, and what they point
        // to is never unmapped.
        let (own, control) = unsafe {
            (
                &*OWN.load(Ordering::Acquire),
                &*SHARED.load(Ordering::Acquire),
            )
        };
        // Relaxed: an old beat only makes a time earlier.
        let beat = control.beat.load(Ordering::Relaxed);
        if own.state() == ALONE && thread.beat.get() == beat {
            thread.reuses.set(thread.reuses.get() - 1);
            return thread.stamp.get();
        }
    }
    fresh_stamp(thread, read)
}

/// Returns a time stamp that does not reuse a reading.
#[inline(never)]
fn fresh_stamp(thread: &Thread, read: fn() -> u64) -> u64 {
    // Relaxed: an old beat only makes a time earlier.
    let beat = control().map_or(0, |control| control.beat.load(Ordering::Relaxed));
    let may_reuse = state() == ALONE && control::sample_bytes() == 0;
    thread.reuses.set(if may_reuse { REUSES } else { 0 });
    thread.beat.set(beat);
    thread
        .stamp
        .set(if clock::may_read() { read() } else { beat });
    thread.stamp.get()
}

/// Writes an event into the ring of the calling thread.
#[inline]
pub fn push(event: Event) {
    let Event {
        stamp,
        size,
        address,
        code,
    } = event;
    let thread = thread();
    let is_near = stamp.wrapping_sub(thread.base.get()) <= FAR;
    // The state is tested before the ring is used, because in a forked child the ring of the
    // parent's thread is not mapped.
    if thread.ring.get().is_null() || state() == NEW || size >= LONG || !is_near {
        return push_rarely(stamp, size, address, code);
    }
    // SAFETY: a thread's ring stays mapped until the process ends or executes.
    let ring = unsafe { &*thread.ring.get() };
    let index = ring.reserve(1);
    if index >= thread.limit.get() {
        return write_late(index, stamp, size, address, code);
    }
    ring.write(index, event);
}

// The arguments of the cold functions are numbers, because a reference to an event would make each
// call store the event on the stack.

/// Writes an event of a thread that has no ring yet, or an event whose time or size does not fit
/// into its entry.
#[cold]
#[inline(never)]
extern "C" fn push_rarely(stamp: u64, size: u64, address: u64, code: u8) {
    let thread = thread();
    if (thread.ring.get().is_null() || state() == NEW) && !open() {
        return;
    }
    // SAFETY: a thread's ring stays mapped until the process ends or executes.
    let ring = unsafe { &*thread.ring.get() };
    if size >= LONG || stamp.wrapping_sub(thread.base.get()) > FAR {
        let event = Event {
            stamp,
            size,
            address,
            code,
        };
        return push_in_full(thread, ring, event);
    }
    write_late(ring.reserve(1), stamp, size, address, code);
}

/// Writes an event into the reserved entry with this index, which may not be free yet.
#[cold]
#[inline(never)]
extern "C" fn write_late(index: u64, stamp: u64, size: u64, address: u64, code: u8) {
    let thread = thread();
    // SAFETY: a thread's ring stays mapped until the process ends or executes.
    let ring = unsafe { &*thread.ring.get() };
    if index < thread.limit.get() || wait(ring, index) {
        ring.write(
            index,
            Event {
                stamp,
                size,
                address,
                code,
            },
        );
    }
}

/// Writes an event whose time or size does not fit into its entry.
fn push_in_full(thread: &Thread, ring: &Ring, event: Event) {
    // One reservation for all three entries, so that no entry of a signal handler comes between
    // them.
    let mut index = ring.reserve(3);
    if index + 2 >= thread.limit.get() && !wait(ring, index + 2) {
        return;
    }
    thread.base.set(event.stamp);
    for (code, detail) in [(code::TIME, event.stamp), (code::SIZE, event.size)] {
        ring.write_whole(index, code, 0, detail);
        index += 1;
    }
    ring.write(index, event);
}

/// Assigns a ring to the calling thread. Returns false if recording is over or no ring can be
/// created. Keeps errno and the signal mask.
#[cold]
fn open() -> bool {
    let (Some(own), false) = (own(), OVER.load(Ordering::Relaxed)) else {
        return false;
    };
    let ring = if is_sandboxed() {
        take_spare(own, 0).inspect(|_| own.has_opened())
    } else {
        locked(own, || ring_for_thread(own))
    };
    let Some(ring) = ring else {
        give_up();
        return false;
    };
    thread().ring.set(ring);
    thread().limit.set(ring.limit());
    true
}

/// Returns a ring for the calling thread, which holds the lock on the rings; `None` if recording is
/// over or no file can be created.
fn ring_for_thread(own: &Own) -> Option<&'static Ring> {
    begin_process()?;
    let tid = tid();
    let fresh = || make(own, tid).filter(|ring| begin_thread(ring, tid));
    let ring = reuse(own, tid)
        .or_else(|| take_spare(own, tid))
        .or_else(fresh)?;
    own.has_opened();
    Some(ring)
}

/// Runs `work` under the lock on the rings. Blocks signals, because a handler that allocates would
/// wait for the lock that its own thread holds.
fn locked<T>(own: &Own, work: impl FnOnce() -> T) -> T {
    let before = kernel::block_signals(u64::MAX);
    // Acquire: pairs with the release below, so the list of rings is complete.
    while own.locked.swap(1, Ordering::Acquire) != 0 {
        kernel::yield_to_others();
    }
    let done = work();
    own.locked.store(0, Ordering::Release);
    kernel::block_signals(before);
    done
}

/// Creates rings in advance, for the calling thread and for threads that first allocate in the
/// sandbox, where system calls may be forbidden. A child of vfork needs only the ring of its
/// parent's thread. Returns false inside a sandbox, or if recording is over or the calling thread
/// can get no ring.
pub fn prepare_sandbox() -> bool {
    let (Some(own), false) = (own(), OVER.load(Ordering::Relaxed)) else {
        return false;
    };
    let has_ring = || (!thread().ring.get().is_null() && state() != NEW) || open();
    if is_sandboxed() || !has_ring() {
        return false;
    }
    if is_child_of_vfork() {
        thread().has_sandboxed_child.set(true);
        return true;
    }
    locked(own, || {
        for _ in 0..SPARES {
            make(own, SPARE);
        }
    });
    SANDBOXED.store(true, Ordering::Relaxed);
    true
}

/// Allows system calls again after the kernel has refused the sandbox.
pub fn leave_sandbox() {
    thread().has_sandboxed_child.set(false);
    SANDBOXED.store(false, Ordering::Relaxed);
}

/// Gives a new process its image. Returns `None` if recording is over.
fn begin_process() -> Option<()> {
    if state() == NEW {
        PARENT.store(IMAGE.load(Ordering::Relaxed), Ordering::Relaxed);
        let is_unknown = pid() == 0;
        if is_unknown {
            begin_unknown_image();
        }
        IMAGE.store(new_image(), Ordering::Relaxed);
        if is_unknown {
            // The process was forked by a system call that runs no handlers, so the time of the
            // fork is unknown.
            thread().renew_samples();
            thread().forked.set(IMAGE.load(Ordering::Relaxed));
            if !is_child_of_vfork() {
                timing::begin_process(0);
            }
        }
        NAMESPACE.store(namespace(), Ordering::Relaxed);
    }
    (control()?.closed.load(Ordering::Relaxed) == 0).then_some(())
}

/// Returns a new identity for an image: the time at which the image begins.
fn new_image() -> u64 {
    // Without the counter, several processes may begin during one beat of the collector, so the
    // process ID makes their identities distinct.
    let distinct = if clock::may_read() { 0 } else { pid() };
    clock().wrapping_add(distinct.into())
}
