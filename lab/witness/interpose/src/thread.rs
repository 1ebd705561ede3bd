//! State of one thread: a thread-local variable that assembly can name.

use core::cell::Cell;

use crate::extent::Extent;
use crate::ring::Ring;

/// State of one thread; zeros in a new thread.
#[repr(C)]
pub struct Thread {
    /// Stack pointer, return address and slot at the latest counted entry.
    _last: Cell<[usize; 3]>,
    /// Number of the thread; 0 if it has none yet.
    pub number: Cell<u64>,
    /// Ring of the thread; null if it has none yet.
    pub ring: Cell<*const Ring>,
    /// Index from which the ring may be full.
    pub limit: Cell<u64>,
    /// Requested bytes before the thread's next sample point.
    pub until: Cell<u64>,
    /// State of the random numbers that place sample points; 0 in a new thread.
    pub seed: Cell<u64>,
    /// Number of requested bytes between the next sample point and the next point without a stack.
    pub plain_gap: Cell<u64>,
    /// Number of requested bytes between the next sample point and the next point with a stack.
    pub stack_gap: Cell<u64>,
    /// The known part of the thread's own stack: see [`crate::stack`].
    pub stack: Cell<Extent>,
    /// Latest time that was written to the ring in full.
    pub base: Cell<u64>,
    /// Latest time stamp: the processor's counter, or the collector's beat if the thread may not
    /// read the counter.
    pub stamp: Cell<u64>,
    /// The collector's beat when `stamp` was read.
    pub beat: Cell<u64>,
    /// Number of further calls that may reuse `stamp`.
    pub reuses: Cell<u32>,
    /// Right of the thread to read the processor's counter: see [`crate::clock`].
    pub clock: Cell<u32>,
    /// Number of recorded calls before the next one that is timed.
    pub until_timed: Cell<u32>,
    /// Whether a child of vfork runs as this thread and has entered a sandbox. The child uses the
    /// memory of its parent, whose thread is suspended until the child ends or executes a program.
    pub has_sandboxed_child: Cell<bool>,
    /// State of the random numbers that choose timed calls; 0 in a new thread.
    pub timing_seed: Cell<u64>,
    /// Ticks for which the thread has slept since its latest timed call began, because its ring was
    /// full.
    pub slept: Cell<u64>,
    /// Time of the latest fork by this thread. In a forked child, its parent's thread made that
    /// fork.
    pub forked: Cell<u64>,
}

impl Thread {
    /// Restarts the random numbers in a forked child, so that it does not draw the same sample
    /// points and timed calls as its parent.
    pub fn renew_samples(&self) {
        self.until.set(0);
        self.seed.set(0);
        self.timing_seed.set(0);
        self.until_timed.set(0);
    }
}

const _: () = assert!(size_of::<Thread>() == 160);

// The `Thread` of each thread. Assembly cannot name Rust's own thread-local variables.
core::arch::global_asm!(
    ".pushsection .tbss.heapdrome_last, \"awT\", %nobits",
    ".globl heapdrome_last",
    ".hidden heapdrome_last",
    ".type heapdrome_last, %object",
    ".size heapdrome_last, 160",
    ".p2align 3",
    "heapdrome_last:",
    ".zero 160",
    ".popsection",
);

/// Returns the state of the calling thread.
pub fn thread() -> &'static Thread {
    // SAFETY: the address belongs to an aligned thread-local variable. It begins as zeros, which
    // are a valid `Thread`. All fields are cells, so several references may exist. `Thread` is not
    // `Sync`, so no other thread gets one.
    unsafe { &*thread_address() }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn thread_address() -> *const Thread {
    let address;
    // SAFETY: the instructions only read the variable's offset from the thread pointer, and that
    // pointer. Both stay the same while the thread runs, as if no memory was read.
    unsafe {
        core::arch::asm!(
            "mov {address}, qword ptr [rip + heapdrome_last@GOTTPOFF]",
            "add {address}, qword ptr fs:[0]",
            address = out(reg) address,
            options(nostack, pure, nomem),
        );
    }
    address
}

#[cfg(target_arch = "aarch64")]
#[inline]
fn thread_address() -> *const Thread {
    let address;
    // SAFETY: the instructions only read the variable's offset from the thread pointer, and that
    // pointer. Both stay the same while the thread runs, as if no memory was read.
    unsafe {
        core::arch::asm!(
            "adrp {address}, :gottprel:heapdrome_last",
            "ldr {address}, [{address}, :gottprel_lo12:heapdrome_last]",
            "mrs {pointer}, tpidr_el0",
            "add {address}, {address}, {pointer}",
            address = out(reg) address,
            pointer = out(reg) _,
            options(nostack, pure, nomem),
        );
    }
    address
}
