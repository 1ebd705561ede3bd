//! Manages the rings of this process: one for each thread that allocates.

use core::ptr::null_mut;
use core::sync::atomic::Ordering;

use crate::clock::{self, clock};
use crate::control;
use crate::folder::{self, Name};
use crate::kernel;
use crate::marks;
use crate::own::{
    ALONE, IMAGE, NAMESPACE, NEW, OVER, OWN, Own, PARENT, SANDBOXED, SHARED, begin_image,
    begin_unknown_image, control, give_up, is_child_of_vfork, is_sandboxed, namespace, own, pid,
    state, tid,
};
use crate::ring::{CONTROL, Control, Event, FAR, LONG, MAGIC, PATH_BYTES, PREFIX, Ring, code};
use crate::system;
use crate::thread::{Thread, thread};
use crate::timing;
use crate::waiting::wait;

/// Path of the object that serves malloc. Written before the first ring is created.
struct Server(core::cell::UnsafeCell<[u8; PATH_BYTES]>);

// SAFETY: `set_server` writes at the program's first call to malloc, before the program starts a
// thread. If this library's constructor calls it again, it writes the same bytes. Otherwise the
// bytes are only read.
unsafe impl Sync for Server {}

static SERVER: Server = Server(core::cell::UnsafeCell::new([0; PATH_BYTES]));

/// Number of calls that may reuse the time of an earlier call while only one thread allocates.
/// Reading the processor's counter takes longer than the rest of a recorded call.
const REUSES: u32 = 7;

/// Number of rings that a process creates before it enters a sandbox.
const SPARES: u32 = 16;

/// Thread ID of a ring that was created in advance. No thread has this ID.
const SPARE: u32 = u32::MAX;

/// Maximum number of rings that a thread examines to find one whose thread has ended, before it
/// creates a new ring.
const LOOKS: usize = 16;

/// Stores the path of the object that serves malloc.
pub fn set_server(path: &[u8]) {
    let length = path.len().min(PATH_BYTES - 1);
    // SAFETY: no other thread accesses the path before the first ring is created. A later call, by
    // this library's constructor, writes the bytes that are there already.
    unsafe { (&mut (*SERVER.0.get()))[..length].copy_from_slice(&path[..length]) };
}

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

/// Searches up to [`LOOKS`] rings for one whose thread has ended. Gives that ring to the thread
/// `me`, and returns it. Returns `None` if the search finds no such ring, or the recording is over.
/// A ring that already has the ID `me` belonged to an ended thread, whose ID was reused.
fn reuse(own: &Own, me: u32) -> Option<&'static Ring> {
    let mut ring = own.cursor.load(Ordering::Relaxed);
    for _ in 0..LOOKS {
        if ring.is_null() {
            ring = own.rings.load(Ordering::Relaxed);
        }
        // SAFETY: rings of the list stay mapped, and the caller holds the lock on the list.
        let current = unsafe { ring.as_ref()? };
        ring = current.next as *mut Ring;
        own.cursor.store(ring, Ordering::Relaxed);
        let writer = current.tid.load(Ordering::Relaxed);
        if (me != 0 && writer == me) || kernel::lacks_thread(current.pid, writer) {
            current.tid.store(me, Ordering::Relaxed);
            return begin_thread(current, me).then_some(current);
        }
    }
    None
}

/// Gives a ring that was created in advance to the thread `me`, and returns it. Returns `None` if
/// no such ring is left, or the recording is over. Makes no system call in a sandbox.
fn take_spare(own: &Own, me: u32) -> Option<&'static Ring> {
    let mut ring = own.rings.load(Ordering::Acquire);
    // SAFETY: rings of the list stay mapped, and the list of a forked child is empty.
    while let Some(current) = unsafe { ring.as_ref() } {
        // Relaxed: the acquire of the list already makes the ring's other fields visible.
        let tid = &current.tid;
        let taken = tid.compare_exchange(SPARE, me, Ordering::Relaxed, Ordering::Relaxed);
        if taken.is_ok() {
            return begin_thread(current, me).then_some(current);
        }
        ring = current.next as *mut Ring;
    }
    None
}

/// Records that the calling thread writes the following entries of a ring. Returns false if the
/// recording is over.
fn begin_thread(ring: &Ring, tid: u32) -> bool {
    let index = ring.reserve(1);
    if index >= ring.limit() && !wait(ring, index) {
        return false;
    }
    ring.write_whole(index, code::THREAD, tid.into(), clock());
    true
}

/// Returns a new ring, in a file of this library's folder; `None` if the file cannot be created.
fn make(own: &Own, tid: u32) -> Option<&'static Ring> {
    let control = control()?;
    let number = own.made.fetch_add(1, Ordering::Relaxed);
    let ring = map_new(number)?;
    // SAFETY: the file is new and mapped writable. No other thread knows the ring before it is in
    // the list, and the collector does not read it before it has its magic. The ring is not mapped
    // in a forked child, which must not write to it. No thread writes `SERVER` any longer. The path
    // ends with a zero, and `program` has `PATH_BYTES` bytes.
    unsafe {
        kernel::advise(ring.cast(), size_of::<Ring>(), system::MADV_DONTFORK);
        (*ring).pid = pid();
        (*ring).tid.store(tid, Ordering::Relaxed);
        (*ring).image = IMAGE.load(Ordering::Relaxed);
        (*ring).parent = PARENT.load(Ordering::Relaxed);
        (*ring).forked = thread().forked.get();
        (*ring).namespace = NAMESPACE.load(Ordering::Relaxed);
        (*ring).number = number;
        (*ring).began = timing::began();
        (*ring).next = own.rings.load(Ordering::Relaxed) as usize;
        (*ring).server = *SERVER.0.get();
        let program = (&raw mut (*ring).program).cast();
        kernel::readlink(c"/proc/self/exe".as_ptr(), program, PATH_BYTES - 1);
        // Release: pairs with the collector's acquire, so the collector sees the other fields.
        (*ring).magic.store(MAGIC, Ordering::Release);
    }
    // Release: pairs with the acquire of a thread that takes a spare ring, so that thread sees the
    // other fields.
    own.rings.store(ring, Ordering::Release);
    // Release: a collector that reads the number also finds the file.
    control.rings.fetch_add(1, Ordering::Release);
    // SAFETY: the ring stays mapped until the process ends or executes.
    Some(unsafe { &*ring })
}

/// Maps a new file with a unique name for a ring; `None` on failure.
fn map_new(number: u32) -> Option<*mut Ring> {
    let (pid, image) = (pid(), IMAGE.load(Ordering::Relaxed));
    let name = Name::new(PREFIX, pid, image).and(number);
    Some(folder::map(name.bytes(), true, size_of::<Ring>())?.cast())
}
