//! The rings of this process: one for each thread that allocates.

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::Ordering;

use crate::control;
use crate::folder::{self, Name};
use crate::marks;
use crate::own::{
    ALONE, FORKED, IMAGE, NAMESPACE, NEW, OVER, OWN, Own, PARENT, PID, SHARED, THREADED,
    begin_image, control, give_up, namespace, own, state, tid,
};
use crate::ring::{CONTROL, Control, Event, FAR, LONG, MAGIC, PATH_BYTES, PREFIX, Ring, code};
use crate::system;
use crate::thread::{Thread, thread};
use crate::waiting::wait;

/// Path of the object that serves malloc. Written before the first ring is made.
struct Server(core::cell::UnsafeCell<[u8; PATH_BYTES]>);

// SAFETY: `set_server` is called while the loader's lock or the first call of malloc excludes
// other threads; afterwards the bytes are only read.
unsafe impl Sync for Server {}

static SERVER: Server = Server(core::cell::UnsafeCell::new([0; PATH_BYTES]));

/// Number of calls that may take the time of the call before them, where one thread allocates. To
/// read the processor's counter takes longer than all else that a recorded call does.
const REUSES: u32 = 7;

/// How many rings are looked at for one whose thread has ended, before a new one is made.
const LOOKS: usize = 16;

/// Remembers which object serves malloc.
pub fn set_server(path: &[u8]) {
    let length = path.len().min(PATH_BYTES - 1);
    // SAFETY: see `Server`.
    unsafe { (&mut (*SERVER.0.get()))[..length].copy_from_slice(&path[..length]) };
}

/// Prepares recording; called whenever a function is bound.
pub fn begin() {
    if !OWN.load(Ordering::Acquire).is_null() {
        return;
    }
    let flags = system::MAP_PRIVATE | system::MAP_ANONYMOUS;
    // SAFETY: new mappings disturb nothing; the page is only used as `Own`, whose zeros are valid.
    unsafe {
        let page = system::mmap(null_mut(), 4096, system::PROT_READ_WRITE, flags, -1, 0);
        let control = folder::map(CONTROL.as_bytes(), false, size_of::<Control>());
        let usable = page as usize != usize::MAX
            && system::madvise(page, 4096, system::MADV_WIPEONFORK) == 0;
        let (true, Some(control)) = (usable, control.map(<*mut c_void>::cast::<Control>)) else {
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
            system::munmap(page, 4096);
        }
        begin_image();
    }
}

/// Makes sure that the collector knows this process.
pub fn announce() {
    if state() == NEW {
        open();
    }
}

/// The ring of the calling thread; `None` if recording is over.
pub fn current() -> Option<&'static Ring> {
    if (thread().ring.is_null() || state() == NEW) && !open() {
        return None;
    }
    // SAFETY: a thread's ring stays mapped until the process ends or executes.
    unsafe { thread().ring.as_ref() }
}

/// Notes that this process is about to fork.
pub unsafe extern "C" fn before_fork() {
    FORKED.store(system::ticks(), Ordering::Relaxed);
}

/// The time of a call, which no call of another thread may contradict that hands on a block.
///
/// While one thread allocates, the order of its calls is that of its ring. Their times are then
/// exact for the first call after each beat of the collector, and for every eighth.
#[inline]
pub fn stamp(read: impl FnOnce() -> u64) -> u64 {
    let thread = thread();
    // Relaxed: a stale beat only makes a time older by as much.
    let beat = control().map_or(0, |control| control.beat.load(Ordering::Relaxed));
    let is_alone = state() == ALONE;
    if is_alone && thread.reuses > 0 && thread.beat == beat {
        thread.reuses -= 1;
        return thread.stamp;
    }
    thread.reuses = if is_alone { REUSES } else { 0 };
    thread.beat = beat;
    thread.stamp = read();
    thread.stamp
}

/// Writes an event into the ring of the calling thread.
#[inline]
pub fn push(event: Event) {
    let thread = thread();
    // The order matters: in a child the ring of the parent's thread is not mapped.
    if (thread.ring.is_null() || state() == NEW) && !open() {
        return;
    }
    // SAFETY: a thread's ring stays mapped until the process ends or executes.
    let ring = unsafe { &*thread.ring };
    if event.size >= LONG || event.stamp.wrapping_sub(thread.base) > FAR {
        return push_in_full(thread, ring, event);
    }
    let index = ring.reserve(1);
    if index >= thread.limit && !wait(ring, index) {
        return;
    }
    ring.write(index, event);
}

/// Writes an event whose time or size does not fit into its entry.
#[cold]
fn push_in_full(thread: &mut Thread, ring: &Ring, event: Event) {
    // Reserved together: no signal handler's entry comes between them.
    let mut index = ring.reserve(3);
    if index + 2 >= thread.limit && !wait(ring, index + 2) {
        return;
    }
    thread.base = event.stamp;
    for (code, detail) in [(code::TIME, event.stamp), (code::SIZE, event.size)] {
        ring.write_whole(index, code, 0, detail);
        index += 1;
    }
    ring.write(index, event);
}

/// Gets a ring for the calling thread; errno and the signal mask stay as they were.
#[cold]
fn open() -> bool {
    let (Some(own), false) = (own(), OVER.load(Ordering::Relaxed)) else {
        return false;
    };
    // SAFETY: every thread has an errno. Signals are blocked, since a handler that allocates
    // would wait for the lock that its thread holds.
    unsafe {
        let errno = *system::__errno_location();
        let (all, mut before) = (u64::MAX, 0_u64);
        system::syscall(
            system::SYS_SIGPROCMASK,
            2_i64,
            &raw const all,
            &raw mut before,
            8_i64,
        );
        // Acquire and release pair with each other: the list of rings is complete.
        while own.locked.swap(1, Ordering::Acquire) != 0 {
            system::sched_yield();
        }
        let ring = begin_process(own).and_then(|()| reuse(own).or_else(|| make(own)));
        if ring.is_some() {
            let others = own.state.load(Ordering::Relaxed) != NEW;
            own.state
                .store(if others { THREADED } else { ALONE }, Ordering::Relaxed);
        }
        own.locked.store(0, Ordering::Release);
        system::syscall(
            system::SYS_SIGPROCMASK,
            2_i64,
            &raw const before,
            null_mut::<u64>(),
            8_i64,
        );
        *system::__errno_location() = errno;
        let Some(ring) = ring else {
            give_up();
            return false;
        };
        thread().ring = ring;
        thread().limit = (*ring).limit();
        true
    }
}

/// Gives a process that has just begun its image.
fn begin_process(own: &Own) -> Option<()> {
    if own.state.load(Ordering::Relaxed) == NEW {
        PARENT.store(IMAGE.load(Ordering::Relaxed), Ordering::Relaxed);
        IMAGE.store(system::ticks(), Ordering::Relaxed);
        NAMESPACE.store(namespace(), Ordering::Relaxed);
    }
    (control()?.closed.load(Ordering::Relaxed) == 0).then_some(())
}

/// A ring whose thread has ended.
fn reuse(own: &Own) -> Option<*mut Ring> {
    let me = tid();
    let mut ring = own.cursor.load(Ordering::Relaxed);
    for _ in 0..LOOKS {
        if ring.is_null() {
            ring = own.rings.load(Ordering::Relaxed);
        }
        // SAFETY: rings of the list are mapped, and the lock is held.
        let current = unsafe { ring.as_ref()? };
        own.cursor
            .store(current.next as *mut Ring, Ordering::Relaxed);
        let writer = current.tid.load(Ordering::Relaxed);
        if (me != 0 && writer == me) || has_ended(current.pid, writer) {
            current.tid.store(me, Ordering::Relaxed);
            return begin_thread(current, me).then_some(ring);
        }
        ring = current.next as *mut Ring;
    }
    None
}

/// Notes that the following entries of a ring are of the calling thread.
fn begin_thread(ring: &Ring, tid: u32) -> bool {
    let index = ring.reserve(1);
    if index >= ring.limit() && !wait(ring, index) {
        return false;
    }
    ring.write_whole(index, code::THREAD, tid.into(), system::ticks());
    true
}

fn has_ended(pid: u32, tid: u32) -> bool {
    const ESRCH: c_int = 3;
    let (pid, tid) = (i64::from(pid), i64::from(tid));
    // SAFETY: signal 0 is never sent; errno is restored by `open`.
    unsafe {
        system::syscall(system::SYS_TGKILL, pid, tid, 0_i64) < 0
            && *system::__errno_location() == ESRCH
    }
}

/// A new ring, in a file beside this library.
fn make(own: &Own) -> Option<*mut Ring> {
    let control = control()?;
    let (pid, tid) = (PID.load(Ordering::Relaxed), tid());
    let number = own.made.fetch_add(1, Ordering::Relaxed);
    let image = IMAGE.load(Ordering::Relaxed);
    let name = Name::new(PREFIX, pid, image).and(number);
    let ring = folder::map(name.bytes(), true, size_of::<Ring>())?.cast::<Ring>();
    // SAFETY: the file is new and mapped writable; no other thread knows it until it is in the
    // list, and the collector does not read it before its magic is there. A child of fork must not
    // write into the parent's ring, so it is not mapped there.
    unsafe {
        system::madvise(ring.cast(), size_of::<Ring>(), system::MADV_DONTFORK);
        (*ring).pid = pid;
        (*ring).tid.store(tid, Ordering::Relaxed);
        (*ring).image = image;
        (*ring).parent = PARENT.load(Ordering::Relaxed);
        (*ring).forked = FORKED.load(Ordering::Relaxed);
        (*ring).namespace = NAMESPACE.load(Ordering::Relaxed);
        (*ring).number = number;
        (*ring).next = own.rings.load(Ordering::Relaxed) as usize;
        (*ring).server = *SERVER.0.get();
        let program = (&raw mut (*ring).program).cast();
        system::readlink(c"/proc/self/exe".as_ptr(), program, PATH_BYTES - 1);
        begin_thread(&*ring, tid);
        // Release pairs with the collector's acquire: the fields are there first.
        (*ring).magic.store(MAGIC, Ordering::Release);
    }
    own.rings.store(ring, Ordering::Relaxed);
    // Release: a collector that sees the number finds the file.
    control.rings.fetch_add(1, Ordering::Release);
    Some(ring)
}
