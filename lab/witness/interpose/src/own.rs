//! What the threads of this process share while it is recorded.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use crate::ring::{Control, Ring};
use crate::slots::SLOTS;
use crate::system;

/// What a child of fork must not inherit: the kernel fills it with zeros there, however it forked.
#[repr(C)]
pub struct Own {
    /// Whether this process has an image, and several threads that allocate: one of [`NEW`],
    /// [`ALONE`], [`THREADED`].
    pub state: AtomicU32,
    /// Not 0: a thread is getting a ring.
    pub locked: AtomicU32,
    /// The rings of this process, linked by [`Ring::next`].
    pub rings: AtomicPtr<Ring>,
    /// Where the search for a ring without a thread goes on.
    pub cursor: AtomicPtr<Ring>,
    /// Number of rings that this process made.
    pub made: AtomicU32,
    /// Not 0: this process has written its mappings.
    pub mapped: AtomicU32,
}

/// This process has no image yet.
pub const NEW: u32 = 0;
/// One thread of this process has a ring.
pub const ALONE: u32 = 1;
/// Several threads of this process have had a ring.
pub const THREADED: u32 = 2;

/// The page that holds an [`Own`]; null until a function is bound.
pub static OWN: AtomicPtr<Own> = AtomicPtr::new(null_mut());
/// What all recorded processes share; null until a function is bound.
pub static SHARED: AtomicPtr<Control> = AtomicPtr::new(null_mut());
/// The image of this process, or in a child that has not begun the image of its parent.
pub static IMAGE: AtomicU64 = AtomicU64::new(0);
/// The number of this process. A child of vfork has another one, and its parent's memory.
pub static PID: AtomicU32 = AtomicU32::new(0);
/// See [`Ring::namespace`].
pub static NAMESPACE: AtomicU64 = AtomicU64::new(0);
/// See [`Ring::parent`].
pub static PARENT: AtomicU64 = AtomicU64::new(0);
/// When this process, or an ancestor, last forked.
pub static FORKED: AtomicU64 = AtomicU64::new(0);
/// Recording is over: no thread gets a ring any more.
pub static OVER: AtomicBool = AtomicBool::new(false);

/// See [`Own`]; `None` until a function is bound.
pub fn own() -> Option<&'static Own> {
    // SAFETY: once set, the page stays mapped; all its fields are atomics.
    unsafe { OWN.load(Ordering::Acquire).as_ref() }
}

/// What all recorded processes share; `None` until a function is bound.
pub fn control() -> Option<&'static Control> {
    // SAFETY: once set, the mapping stays; all its fields are atomics.
    unsafe { SHARED.load(Ordering::Acquire).as_ref() }
}

/// One of [`NEW`], [`ALONE`], [`THREADED`].
#[inline]
pub fn state() -> u32 {
    // Relaxed: it becomes NEW by fork only, while the process has one thread, and THREADED before
    // another thread hands on a block.
    own().map_or(NEW, |own| own.state.load(Ordering::Relaxed))
}

/// The number in the name of this process's namespace: `pid:[4026531836]`.
pub fn namespace() -> u64 {
    let mut name = [0_u8; 64];
    let path = c"/proc/thread-self/ns/pid".as_ptr();
    // SAFETY: the path ends with a zero, and the name has the room that is given.
    let length = unsafe { system::readlink(path, name.as_mut_ptr().cast(), name.len()) };
    let digits = name
        .iter()
        .take(length.max(0) as usize)
        .filter(|it| it.is_ascii_digit());
    digits.fold(0, |number: u64, digit| {
        number
            .wrapping_mul(10)
            .wrapping_add(u64::from(digit - b'0'))
    })
}

/// The number of the calling thread; 0 in a child of vfork, which runs as a thread of its parent.
/// No thread has this number, so a ring with it is never taken for one whose thread has ended.
pub fn tid() -> u32 {
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

/// Ends the recording of this process: later calls go straight to the allocator.
#[cold]
pub fn give_up() {
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
