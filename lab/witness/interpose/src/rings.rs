//! The rings of this process: one for each thread that allocates.

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use crate::control::{self, control};
use crate::folder::{self, Name};
use crate::marks;
use crate::process;
use crate::ring::{Control, Event, MAGIC, PATH_BYTES, PREFIX, Ring, code};
use crate::slots::SLOTS;
use crate::system;
use crate::thread::thread;

/// What a child of fork must not inherit: the kernel fills it with zeros there, however it forked.
#[repr(C)]
struct Own {
    /// Not 0: this process has an image.
    begun: AtomicU32,
    /// Not 0: a thread is getting a ring.
    locked: AtomicU32,
    /// The rings of this process, linked by [`Ring::next`].
    rings: AtomicPtr<Ring>,
    /// Where the search for a ring without a thread goes on.
    cursor: AtomicPtr<Ring>,
    /// Number of rings that this process made.
    made: AtomicU32,
    /// Not 0: this process has written its mappings.
    mapped: AtomicU32,
}

/// The page that holds an [`Own`]; null until a function is bound.
static OWN: AtomicPtr<Own> = AtomicPtr::new(null_mut());
/// The image of this process, or in a child that has not begun the image of its parent.
static IMAGE: AtomicU64 = AtomicU64::new(0);
/// The number of this process. A child of vfork has another one, and its parent's memory.
static PID: AtomicU32 = AtomicU32::new(0);
/// See [`Ring::namespace`].
static NAMESPACE: AtomicU64 = AtomicU64::new(0);
static PARENT: AtomicU64 = AtomicU64::new(0);
/// When this process, or an ancestor, last forked.
static FORKED: AtomicU64 = AtomicU64::new(0);
/// Recording is over: no thread gets a ring any more.
static OVER: AtomicBool = AtomicBool::new(false);

/// How many rings are looked at for one whose thread has ended, before a new one is made.
const LOOKS: usize = 16;

/// Nanoseconds of a pause while a ring is full.
const PAUSE: i64 = 50_000;
/// After this many pauses without a beat the collector is given up: about ten seconds.
const PATIENCE: u32 = 100_000;
/// Pauses between two looks at whether the collector lives.
const LOOK_AT_COLLECTOR: u32 = 1_000;

/// Prepares recording; called whenever a function is bound.
pub fn begin() {
    if !OWN.load(Ordering::Acquire).is_null() {
        return;
    }
    let flags = system::MAP_PRIVATE | system::MAP_ANONYMOUS;
    // SAFETY: new mappings disturb nothing; the page is only used as `Own`, whose zeros are valid.
    unsafe {
        let page = system::mmap(null_mut(), 4096, system::PROT_READ_WRITE, flags, -1, 0);
        let usable = page as usize != usize::MAX
            && system::madvise(page, 4096, system::MADV_WIPEONFORK) == 0;
        if control::begin().is_none() || !usable {
            OVER.store(true, Ordering::Relaxed);
            return;
        }
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

fn own() -> Option<&'static Own> {
    // SAFETY: once set, the page stays mapped; all its fields are atomics.
    unsafe { OWN.load(Ordering::Acquire).as_ref() }
}

/// Makes sure that the collector knows this process.
pub fn announce() {
    if is_new_process() {
        open();
    }
}

/// The ring of the calling thread; `None` if recording is over.
pub fn current() -> Option<&'static Ring> {
    if (thread().ring.is_null() || is_new_process()) && !open() {
        return None;
    }
    // SAFETY: a thread's ring stays mapped until the process ends or executes.
    unsafe { thread().ring.as_ref() }
}

/// Whether this process has to write its mappings: true once.
pub fn maps_are_due() -> bool {
    own().is_some_and(|own| own.mapped.swap(1, Ordering::Relaxed) == 0)
}

/// Notes that this process is about to fork.
pub unsafe extern "C" fn before_fork() {
    FORKED.store(system::ticks(), Ordering::Relaxed);
}

/// Writes an event into the ring of the calling thread.
#[inline]
pub fn push(event: Event) {
    let thread = thread();
    // The order matters: in a child the ring of the parent's thread is not mapped.
    if (thread.ring.is_null() || is_new_process()) && !open() {
        return;
    }
    // SAFETY: a thread's ring stays mapped until the process ends or executes.
    let ring = unsafe { &*thread.ring };
    let index = ring.reserve();
    if index >= thread.limit && !wait(ring, index) {
        return;
    }
    ring.write(index, event);
}

#[inline]
fn is_new_process() -> bool {
    // Relaxed: the word changes only by fork, while the process has one thread.
    own().is_none_or(|own| own.begun.load(Ordering::Relaxed) == 0)
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
    if own.begun.load(Ordering::Relaxed) == 0 {
        PARENT.store(IMAGE.load(Ordering::Relaxed), Ordering::Relaxed);
        IMAGE.store(system::ticks(), Ordering::Relaxed);
        NAMESPACE.store(process::namespace(), Ordering::Relaxed);
        own.begun.store(1, Ordering::Relaxed);
    }
    (control()?.closed.load(Ordering::Relaxed) == 0).then_some(())
}

/// The number of the calling thread; 0 in a child of vfork, which runs as a thread of its parent.
/// No thread has this number, so a ring with it is never taken for one whose thread has ended.
fn tid() -> u32 {
    // SAFETY: no precondition.
    unsafe {
        if system::getpid().unsigned_abs() == PID.load(Ordering::Relaxed) {
            system::syscall(system::SYS_GETTID) as u32
        } else {
            0
        }
    }
}

/// Notes which process this is, at its start and in a child that has just been forked.
pub fn begin_image() {
    // SAFETY: no precondition.
    let pid = unsafe { system::getpid() }.unsigned_abs();
    PID.store(pid, Ordering::Relaxed);
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
            let index = current.reserve();
            if index >= current.limit() && !wait(current, index) {
                return None;
            }
            let (stamp, size) = (system::ticks(), u64::from(me));
            current.write(
                index,
                Event {
                    stamp,
                    size,
                    address: 0,
                    code: code::THREAD,
                },
            );
            return Some(ring);
        }
        ring = current.next as *mut Ring;
    }
    None
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
    let pid = PID.load(Ordering::Relaxed);
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
        (*ring).tid.store(tid(), Ordering::Relaxed);
        (*ring).image = image;
        (*ring).parent = PARENT.load(Ordering::Relaxed);
        (*ring).forked = FORKED.load(Ordering::Relaxed);
        (*ring).namespace = NAMESPACE.load(Ordering::Relaxed);
        (*ring).number = number;
        (*ring).next = own.rings.load(Ordering::Relaxed) as usize;
        (*ring).server = *process::server();
        let program = (&raw mut (*ring).program).cast();
        system::readlink(c"/proc/self/exe".as_ptr(), program, PATH_BYTES - 1);
        // Release pairs with the collector's acquire: the fields are there first.
        (*ring).magic.store(MAGIC, Ordering::Release);
    }
    own.rings.store(ring, Ordering::Relaxed);
    // Release: a collector that sees the number finds the file.
    control.rings.fetch_add(1, Ordering::Release);
    Some(ring)
}

/// Waits until an entry is free; false if the recording is over.
#[cold]
fn wait(ring: &Ring, index: u64) -> bool {
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
pub fn wait_until(has_room: &dyn Fn() -> bool) -> bool {
    // SAFETY: every thread has an errno; a thread's ring stays mapped, and one with a ring of
    // stacks is there.
    unsafe {
        let errno = *system::__errno_location();
        let done = pause_until(&*thread().ring, has_room);
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

/// Ends the recording of this process: later calls go straight to the allocator.
#[cold]
fn give_up() {
    if OVER.swap(true, Ordering::Relaxed) {
        return;
    }
    for slot in &SLOTS {
        slot.counted_next.store(slot.target(), Ordering::Relaxed);
        slot.next.store(slot.target(), Ordering::Relaxed);
    }
    let Some(control) = control() else { return };
    if control.closed.load(Ordering::Relaxed) != 0 {
        return;
    }
    let mut ring = own().map_or(null_mut(), |own| own.rings.load(Ordering::Acquire));
    if ring.is_null() {
        control.without_ring.fetch_add(1, Ordering::Relaxed);
    }
    // SAFETY: rings of the list stay mapped.
    while let Some(current) = unsafe { ring.as_ref() } {
        current.gave_up.store(1, Ordering::Relaxed);
        ring = current.next as *mut Ring;
    }
}
