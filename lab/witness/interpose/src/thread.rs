//! State of one thread: a thread-local variable that assembly can name.

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
}

const _: () = assert!(size_of::<Thread>() == 48);

// The `Thread` of each thread. Rust's own thread-local variables cannot be named in assembly.
core::arch::global_asm!(
    ".pushsection .tbss.heapdrome_last, \"awT\", %nobits",
    ".globl heapdrome_last",
    ".hidden heapdrome_last",
    ".type heapdrome_last, %object",
    ".size heapdrome_last, 48",
    ".p2align 3",
    "heapdrome_last:",
    ".zero 48",
    ".popsection",
);

/// The state of the calling thread.
pub fn thread() -> &'static mut Thread {
    // SAFETY: the address is that of a thread-local variable, which only its thread reaches; no
    // reference is kept over a call that could ask again.
    unsafe { &mut *thread_address() }
}

#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
extern "C" fn thread_address() -> *mut Thread {
    core::arch::naked_asm!(
        "mov rax, qword ptr [rip + heapdrome_last@GOTTPOFF]",
        "add rax, qword ptr fs:[0]",
        "ret",
    )
}

#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
extern "C" fn thread_address() -> *mut Thread {
    core::arch::naked_asm!(
        "adrp x0, :gottprel:heapdrome_last",
        "ldr x0, [x0, :gottprel_lo12:heapdrome_last]",
        "mrs x1, tpidr_el0",
        "add x0, x0, x1",
        "ret",
    )
}
