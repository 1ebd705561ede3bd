//! State of one thread: a thread-local variable that assembly can name.

use crate::extent::Extent;
use crate::ring::Ring;

/// State of one thread.
#[repr(C)]
pub struct Thread {
    /// The last counted entry: stack pointer, return address and slot.
    _last: [usize; 3],
    /// The number of the thread; 0 where it has none yet.
    pub number: u64,
    /// The ring that the thread writes into; null where it has none yet.
    pub ring: *const Ring,
    /// The index from which on the ring may be full.
    pub limit: u64,
    /// Requested bytes before the thread's next sample point.
    pub until: u64,
    /// State of the random numbers that place sample points; 0 in a new thread.
    pub seed: u64,
    /// Requested bytes from the next sample point to the next point without a stack.
    pub plain_gap: u64,
    /// Requested bytes from the next sample point to the next point with a stack.
    pub stack_gap: u64,
    /// The thread's own stack, as far as it is known: [`crate::stack`].
    pub stack: Extent,
    /// Latest time that was written to the ring in full.
    pub base: u64,
    /// Latest time stamp: the processor's counter, or the collector's beat if the thread may not
    /// read the counter.
    pub stamp: u64,
    /// The collector's beat when `stamp` was read.
    pub beat: u64,
    /// Number of further calls that may reuse `stamp`.
    pub reuses: u32,
    /// Not 0: the thread may not read the processor's counter.
    pub lacks_clock: u32,
    /// Time of the latest fork by this thread, or in a forked child by the parent's thread.
    pub forked: u64,
}

impl Thread {
    /// Restarts the random numbers in a forked child, which must not draw the same sample points as
    /// its parent.
    pub fn renew_samples(&mut self) {
        (self.until, self.seed) = (0, 0);
    }
}

const _: () = assert!(size_of::<Thread>() == 136);

// The `Thread` of each thread. Rust's own thread-local variables cannot be named in assembly.
core::arch::global_asm!(
    ".pushsection .tbss.heapdrome_last, \"awT\", %nobits",
    ".globl heapdrome_last",
    ".hidden heapdrome_last",
    ".type heapdrome_last, %object",
    ".size heapdrome_last, 136",
    ".p2align 3",
    "heapdrome_last:",
    ".zero 136",
    ".popsection",
);

/// The state of the calling thread.
pub fn thread() -> &'static mut Thread {
    // SAFETY: the address is that of a thread-local variable, which only its thread reaches; no
    // reference is kept over a call that could ask again.
    unsafe { &mut *thread_address() }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn thread_address() -> *mut Thread {
    let address;
    // SAFETY: it reads the variable's offset from the thread pointer, and that pointer.
    unsafe {
        core::arch::asm!(
            "mov {address}, qword ptr [rip + heapdrome_last@GOTTPOFF]",
            "add {address}, qword ptr fs:[0]",
            address = out(reg) address,
            options(nostack, pure, readonly),
        );
    }
    address
}

#[cfg(target_arch = "aarch64")]
#[inline]
fn thread_address() -> *mut Thread {
    let address;
    // SAFETY: it reads the variable's offset from the thread pointer, and that pointer.
    unsafe {
        core::arch::asm!(
            "adrp {address}, :gottprel:heapdrome_last",
            "ldr {address}, [{address}, :gottprel_lo12:heapdrome_last]",
            "mrs {pointer}, tpidr_el0",
            "add {address}, {address}, {pointer}",
            address = out(reg) address,
            pointer = out(reg) _,
            options(nostack, pure, readonly),
        );
    }
    address
}
