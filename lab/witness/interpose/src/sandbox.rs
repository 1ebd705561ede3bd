//! Observes calls that enter a sandbox, change the right to read the processor's counter, or create
//! a child by vfork.
//!
//! Under `SECCOMP_MODE_STRICT`, or a filter that kills, this library must make no system call that
//! the program does not make. The definitions here notice that the program is about to enter such a
//! sandbox, and create rings beforehand. Afterwards this library makes no system call of its own. A
//! strict sandbox also forbids reading the processor's counter.

use core::ffi::{c_int, c_long};

use crate::clock;
use crate::kernel::{
    self,
    number::{PRCTL, SECCOMP},
};
use crate::own::{is_child_of_vfork, is_sandboxed, pid};
use crate::rings;
use crate::system;
use crate::thread::thread;

const PR_SET_SECCOMP: usize = 22;
const PR_SET_TSC: usize = 26;
const PR_TSC_ENABLE: usize = 1;
const PR_TSC_SIGSEGV: usize = 2;
const SECCOMP_MODE_STRICT: usize = 1;
const SECCOMP_SET_MODE_STRICT: usize = 0;
#[cfg(target_arch = "x86_64")]
const VFORK: c_long = 58;
#[cfg(target_arch = "aarch64")]
const CLONE: c_long = 220;
#[cfg(target_arch = "aarch64")]
const CLONE_VM: usize = 0x100;
#[cfg(target_arch = "aarch64")]
const CLONE_VFORK: usize = 0x4000;
#[cfg(target_arch = "aarch64")]
const SIGCHLD: usize = 17;
/// Operations of `seccomp` that enter a sandbox: strict mode, and a filter.
const CLOSING: core::ops::RangeInclusive<usize> = 0..=1;

#[unsafe(no_mangle)]
unsafe extern "C" fn prctl(option: c_int, a: usize, b: usize, c: usize, d: usize) -> c_int {
    // SAFETY: the program passes arguments that are valid for this call. The kernel does not read
    // arguments that the program does not pass.
    unsafe { made(PRCTL, [option as usize, a, b, c, d, 0]) as c_int }
}

/// Makes a system call as the C library does.
///
/// The function does not change the stack pointer, because a child may continue after the call on
/// another stack. Only failed calls, and the calls `prctl` and `seccomp`, continue in Rust.
/// [`observed`] finds the arguments where the caller left them.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn syscall() {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "endbr64",
        "cmp rdi, {prctl}",
        "je {observed}",
        "cmp rdi, {seccomp}",
        "je {observed}",
        "mov rax, rdi",
        "mov rdi, rsi",
        "mov rsi, rdx",
        "mov rdx, rcx",
        "mov r10, r8",
        "mov r8, r9",
        "mov r9, [rsp + 8]",
        "syscall",
        "cmp rax, -{max_errno}",
        "jae 2f",
        "ret",
        "2:",
        "mov rdi, rax",
        "jmp {failed}",
        ".cfi_endproc",
        prctl = const PRCTL,
        seccomp = const SECCOMP,
        max_errno = const kernel::MAX_ERRNO,
        observed = sym observed,
        failed = sym failed,
    )
}

/// Makes a system call as the C library does.
///
/// The function does not change the stack pointer, because a child may continue after the call on
/// another stack. Only failed calls, and the calls `prctl` and `seccomp`, continue in Rust.
/// [`observed`] finds the arguments where the caller left them.
#[cfg(target_arch = "aarch64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn syscall() {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "hint #34",
        "cmp x0, #{prctl}",
        "b.eq 2f",
        "cmp x0, #{seccomp}",
        "b.eq 2f",
        "mov x8, x0",
        "mov x0, x1",
        "mov x1, x2",
        "mov x2, x3",
        "mov x3, x4",
        "mov x4, x5",
        "mov x5, x6",
        "svc 0",
        "cmn x0, #{max_errno}",
        "b.hs 3f",
        "ret",
        "2:",
        "b {observed}",
        "3:",
        "b {failed}",
        ".cfi_endproc",
        prctl = const PRCTL,
        seccomp = const SECCOMP,
        max_errno = const kernel::MAX_ERRNO,
        observed = sym observed,
        failed = sym failed,
    )
}

/// Creates a child that uses the memory and the stack of the calling thread, which is suspended
/// until the child ends or executes a program.
///
/// The return address stays in a register during the system call, because the child, once it has
/// returned, may overwrite the address on the stack.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn vfork() {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "endbr64",
        "pop rdi",
        ".cfi_adjust_cfa_offset -8",
        ".cfi_register rip, rdi",
        "mov eax, {vfork}",
        "syscall",
        "push rdi",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_offset rip, -8",
        "test rax, rax",
        "je 2f",
        "mov rdi, rax",
        "jmp {after_vfork}",
        "2:",
        "ret",
        ".cfi_endproc",
        vfork = const VFORK,
        after_vfork = sym after_vfork,
    )
}

/// Creates a child that uses the memory and the stack of the calling thread, which is suspended
/// until the child ends or executes a program.
#[cfg(target_arch = "aarch64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn vfork() {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "hint #34",
        "mov x0, #{flags}",
        "mov x1, #0",
        "mov x8, #{clone}",
        "svc 0",
        "cbz x0, 2f",
        "b {after_vfork}",
        "2:",
        "ret",
        ".cfi_endproc",
        flags = const CLONE_VM | CLONE_VFORK | SIGCHLD,
        clone = const CLONE,
        after_vfork = sym after_vfork,
    )
}

/// Makes the calling thread forget that its child of vfork entered a sandbox, or gained or lost the
/// right to read the counter. Runs in the parent.
extern "C" fn after_vfork(result: isize) -> c_long {
    // The caller may itself be a child of vfork that has entered a sandbox, which must not be
    // forgotten. Before it entered, its thread got a ring, so `pid` is not 0.
    let is_free = pid() == 0 && !is_sandboxed();
    if is_free || !is_child_of_vfork() {
        thread().has_sandboxed_child.set(false);
        clock::ask_again();
    }
    if kernel::is_error(result) {
        return failed(result);
    }
    result as c_long
}

/// Makes a system call that may enter a sandbox.
///
/// # Safety
/// The arguments are the arguments of `syscall`.
unsafe extern "C" fn observed(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    // SAFETY: the program passes arguments that are valid for this call. The kernel does not read
    // arguments that the program does not pass.
    unsafe { made(number, [a, b, c, d, e, f]) }
}

/// Sets errno after a call that failed with this result, and returns the value that the C library
/// would return.
extern "C" fn failed(result: isize) -> c_long {
    // SAFETY: every thread has an errno.
    unsafe { *system::__errno_location() = -result as c_int };
    -1
}

/// Makes a system call as the C library does. Before a call that enters a sandbox, prepares this
/// library. If the call changes the thread's right to read the processor's counter, records the new
/// right.
///
/// # Safety
/// The arguments are valid for this call.
unsafe fn made(number: c_long, arguments: [usize; 6]) -> c_long {
    let [first, second, ..] = arguments;
    let (closes, forbids_clock) = match number {
        PRCTL if first == PR_SET_SECCOMP => (true, second == SECCOMP_MODE_STRICT),
        PRCTL => (false, first == PR_SET_TSC && second == PR_TSC_SIGSEGV),
        SECCOMP => (CLOSING.contains(&first), first == SECCOMP_SET_MODE_STRICT),
        _ => (false, false),
    };
    let prepared = closes && rings::prepare_sandbox();
    let could_read = clock::may_read();
    if forbids_clock {
        clock::set(false);
    }
    // SAFETY: by contract, the arguments are valid for this call.
    let result = unsafe { kernel::call(number, arguments) };
    if !kernel::is_error(result) {
        if number == PRCTL && first == PR_SET_TSC && second == PR_TSC_ENABLE {
            clock::set(true);
        }
        return result as c_long;
    }
    if forbids_clock {
        clock::set(could_read);
    }
    if prepared {
        rings::leave_sandbox();
    }
    failed(result)
}
