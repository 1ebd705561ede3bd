//! State that the threads of this process share while it is recorded.
//!
//! An image is one program that runs in one process. It is identified by [`Ring::image`].

use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use crate::kernel;
use crate::ring::{Control, Ring};
use crate::slots::{SLOTS, pass_on};
use crate::thread::thread;

/// State that a forked child must not inherit. The kernel fills it with zeros in the child, even if
/// the fork bypasses the C library.
#[repr(C)]
pub struct Own {
    /// ID of this process; 0 in a child that was forked without running handlers, until it gets a
    /// ring. A child of vfork sees its parent's ID here, because it uses the parent's memory.
    pid: AtomicU32,
    /// [`NEW`], [`ALONE`], or a larger number if several threads have had a ring.
    state: AtomicU32,
    /// Not 0 while a thread holds the lock on the rings.
    pub locked: AtomicU32,
    /// The rings of this process, linked by [`Ring::next`].
    pub rings: AtomicPtr<Ring>,
    /// Ring at which the next search for a ring without a thread begins.
    pub cursor: AtomicPtr<Ring>,
    /// Number of rings that this process has tried to create.
    pub made: AtomicU32,
    /// Not 0 if this process has written the list of its memory mappings to a file.
    pub mapped: AtomicU32,
}

/// State in which no thread of this process has had a ring.
pub const NEW: u32 = 0;
/// State in which only one thread of this process has had a ring.
pub const ALONE: u32 = 1;

impl Own {
    /// Returns [`NEW`], [`ALONE`], or a larger number if several threads have had a ring.
    #[inline]
    pub fn state(&self) -> u32 {
        // Relaxed: the state becomes NEW only by a fork, after which the process has one thread. It
        // exceeds ALONE before a second thread records its first call. If that thread hands over a
        // block, the program's own synchronisation makes the state visible to the receiver.
        self.state.load(Ordering::Relaxed)
    }

    /// Records that a thread has got a ring.
    pub fn has_opened(&self) {
        // Relaxed: see `state`. A thread increments the state only if it has read at most ALONE, so
        // the state stays small and never overflows to NEW.
        if self.state.load(Ordering::Relaxed) <= ALONE {
            self.state.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The page that holds an [`Own`]; null until [`begin`](crate::rings::begin) has mapped it.
pub static OWN: AtomicPtr<Own> = AtomicPtr::new(null_mut());
/// Memory that all recorded processes share; null until [`begin`](crate::rings::begin) has mapped
/// it.
pub static SHARED: AtomicPtr<Control> = AtomicPtr::new(null_mut());
/// Identity of this process's image, as in [`Ring::image`]; in a forked child, that of the parent's
/// image until the child begins its own.
pub static IMAGE: AtomicU64 = AtomicU64::new(0);
/// PID namespace of this process: see [`Ring::namespace`].
pub static NAMESPACE: AtomicU64 = AtomicU64::new(0);
/// Image from which this process was forked: see [`Ring::parent`].
pub static PARENT: AtomicU64 = AtomicU64::new(0);
/// Whether a sandbox may forbid system calls of this process. See [`is_sandboxed`].
pub static SANDBOXED: AtomicBool = AtomicBool::new(false);
/// Whether recording is over, so that no thread gets a ring.
pub static OVER: AtomicBool = AtomicBool::new(false);

/// Returns the state that a forked child does not inherit; `None` until
/// [`begin`](crate::rings::begin) has mapped it.
pub fn own() -> Option<&'static Own> {
    // SAFETY: once `OWN` is set, the page stays mapped, and all fields of `Own` are atomics.
    unsafe { OWN.load(Ordering::Acquire).as_ref() }
}

/// Returns the memory that all recorded processes share; `None` until
/// [`begin`](crate::rings::begin) has mapped it.
pub fn control() -> Option<&'static Control> {
    // SAFETY: once `SHARED` is set, the mapping stays, and all fields of `Control` are atomics.
    unsafe { SHARED.load(Ordering::Acquire).as_ref() }
}

/// Returns [`NEW`], [`ALONE`], or a larger number if several threads have had a ring.
#[inline]
pub fn state() -> u32 {
    own().map_or(NEW, Own::state)
}

/// Returns the number of this process's PID namespace, such as 4026531836 for `pid:[4026531836]`; 0
/// if it cannot be read.
pub fn namespace() -> u64 {
    let mut name = [0_u8; 64];
    let path = c"/proc/thread-self/ns/pid".as_ptr();
    // SAFETY: the path ends with a zero, and `name` has room for `name.len()` bytes.
    let length = unsafe { kernel::readlink(path, name.as_mut_ptr(), name.len()) };
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

/// Returns the ID of the calling thread; 0 in a child of vfork, which runs as a thread of its
/// parent. The kernel has no thread 0, and never reports it as ended. So a ring with the ID 0 is
/// not taken for the ring of an ended thread.
pub fn tid() -> u32 {
    if is_child_of_vfork() {
        0
    } else {
        kernel::thread()
    }
}

/// Returns the ID of this process in the recording; 0 before [`begin_image`] or
/// [`begin_unknown_image`].
pub fn pid() -> u32 {
    // Relaxed: no other memory depends on the ID. It is written under the lock on the rings, or
    // before a second thread can read it.
    own().map_or(0, |own| own.pid.load(Ordering::Relaxed))
}

/// Returns whether the caller is a child of vfork, which uses the recorded process's memory. Also
/// returns true while [`pid`] is 0.
pub fn is_child_of_vfork() -> bool {
    kernel::process() != pid()
}

/// Records the ID of this process, at its start and in a child that was just forked.
pub fn begin_image() {
    if let Some(own) = own() {
        own.pid.store(kernel::process(), Ordering::Relaxed);
    }
}

/// Records the ID of this process if a system call that runs no handlers forked it. If the caller
/// is a child of vfork, which borrows its parent's memory, records the parent's ID.
pub fn begin_unknown_image() {
    let (me, parent) = (kernel::process(), kernel::parent());
    let borrows = kernel::share_memory(me, parent);
    if let Some(own) = own() {
        let pid = if borrows { parent } else { me };
        own.pid.store(pid, Ordering::Relaxed);
    }
}

/// Returns whether system calls of the calling thread may be forbidden, so that this library makes
/// none for it.
pub fn is_sandboxed() -> bool {
    // Relaxed: a thread sets the flag before the system call that enters the sandbox. If the call
    // also sandboxes other threads, the kernel's locks make the flag visible to them first.
    SANDBOXED.load(Ordering::Relaxed) || thread().has_sandboxed_child.get()
}

/// Ends the recording of this process. Later calls go straight to the allocator.
#[cold]
pub fn give_up() {
    if OVER.swap(true, Ordering::Relaxed) {
        return;
    }
    for slot in &SLOTS {
        slot.counted_next.store(slot.target(), Ordering::Relaxed);
        slot.next.store(slot.target(), Ordering::Relaxed);
        if slot.target() != 0 {
            slot.enter(pass_on as *const () as usize);
        }
    }
    let Some(control) = control() else { return };
    if control.closed.load(Ordering::Relaxed) != 0 {
        return;
    }
    let mut ring = own().map_or(null_mut(), |own| own.rings.load(Ordering::Acquire));
    if ring.is_null() {
        // A process that enters a sandbox has a ring already, unless it is a forked child.
        let failures = match is_sandboxed() {
            true => &control.forked_in_sandbox,
            false => &control.without_ring,
        };
        failures.fetch_add(1, Ordering::Relaxed);
    }
    // SAFETY: rings of the list stay mapped.
    while let Some(current) = unsafe { ring.as_ref() } {
        current.gave_up.store(1, Ordering::Relaxed);
        ring = current.next as *mut Ring;
    }
}
