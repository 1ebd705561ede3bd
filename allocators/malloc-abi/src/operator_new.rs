//! C++'s `operator new` when out of memory.
//!
//! As long as a new-handler is installed, it is called and the allocation retried; the handler may
//! throw. Without a handler, `std::bad_alloc` is thrown. The library must not load a C++ runtime
//! into a C program. So the runtime's functions are weak symbols, which are null without a runtime,
//! or are looked up by name. The exception must not pass through a frame that cannot be unwound. So
//! the loop is written in assembly, with unwind information, and throws with a jump. The Rust
//! functions that call the loop end with this call, which the optimiser turns into a jump. Builds
//! whose panics unwind, such as debug builds, declare the loop `C-unwind`.

use core::ffi::{CStr, c_int, c_void};
use core::ptr::{NonNull, null_mut};

use heapdrome_pages::system::{abort, write_error};

use crate::contract::keeping_errno;
use crate::slow_path::allocate;
use crate::{MAX_SIZE, MIN_ALIGNMENT, MallocAbi};

/// Function that tries once to allocate a block, given its size and alignment. Returns null on
/// failure.
type Attempt = extern "C" fn(usize, usize) -> *mut c_void;

// Intel syntax is Rust's default here. Callee-saved registers hold the size, the alignment and the
// attempt across the calls.
#[cfg(target_arch = "x86_64")]
core::arch::global_asm!(
    ".weak _ZSt15get_new_handlerv",
    ".pushsection .text.heapdrome_new_or_throw, \"ax\", @progbits",
    ".globl heapdrome_new_or_throw",
    ".hidden heapdrome_new_or_throw",
    ".type heapdrome_new_or_throw, @function",
    ".p2align 4",
    "heapdrome_new_or_throw:",
    ".cfi_startproc",
    "push rbx",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_rel_offset rbx, 0",
    "push r12",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_rel_offset r12, 0",
    "push r13",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_rel_offset r13, 0",
    "mov rbx, rdi",
    "mov r12, rsi",
    "mov r13, rdx",
    "2:",
    "mov rdi, rbx",
    "mov rsi, r12",
    "call r13",
    "test rax, rax",
    "jne 3f",
    "mov rax, qword ptr [rip + _ZSt15get_new_handlerv@GOTPCREL]",
    "test rax, rax",
    "je 4f",
    "call rax",
    "test rax, rax",
    "je 4f",
    "call rax",
    "jmp 2b",
    "4:",
    "call {thrower}",
    ".cfi_remember_state",
    "pop r13",
    ".cfi_adjust_cfa_offset -8",
    ".cfi_restore r13",
    "pop r12",
    ".cfi_adjust_cfa_offset -8",
    ".cfi_restore r12",
    "pop rbx",
    ".cfi_adjust_cfa_offset -8",
    ".cfi_restore rbx",
    "jmp rax",
    "3:",
    ".cfi_restore_state",
    "pop r13",
    ".cfi_adjust_cfa_offset -8",
    ".cfi_restore r13",
    "pop r12",
    ".cfi_adjust_cfa_offset -8",
    ".cfi_restore r12",
    "pop rbx",
    ".cfi_adjust_cfa_offset -8",
    ".cfi_restore rbx",
    "ret",
    ".cfi_endproc",
    ".size heapdrome_new_or_throw, . - heapdrome_new_or_throw",
    ".popsection",
    thrower = sym thrower,
);

#[cfg(target_arch = "aarch64")]
core::arch::global_asm!(
    ".weak _ZSt15get_new_handlerv",
    ".pushsection .text.heapdrome_new_or_throw, \"ax\", %progbits",
    ".globl heapdrome_new_or_throw",
    ".hidden heapdrome_new_or_throw",
    ".type heapdrome_new_or_throw, %function",
    ".p2align 4",
    "heapdrome_new_or_throw:",
    ".cfi_startproc",
    "stp x29, x30, [sp, #-48]!",
    ".cfi_def_cfa_offset 48",
    ".cfi_offset x29, -48",
    ".cfi_offset x30, -40",
    "stp x19, x20, [sp, #16]",
    ".cfi_offset x19, -32",
    ".cfi_offset x20, -24",
    "str x21, [sp, #32]",
    ".cfi_offset x21, -16",
    "mov x29, sp",
    "mov x19, x0",
    "mov x20, x1",
    "mov x21, x2",
    "2:",
    "mov x0, x19",
    "mov x1, x20",
    "blr x21",
    "cbnz x0, 3f",
    "adrp x8, :got:_ZSt15get_new_handlerv",
    "ldr x8, [x8, :got_lo12:_ZSt15get_new_handlerv]",
    "cbz x8, 4f",
    "blr x8",
    "cbz x0, 4f",
    "blr x0",
    "b 2b",
    "4:",
    "bl {thrower}",
    "mov x16, x0",
    ".cfi_remember_state",
    "ldr x21, [sp, #32]",
    "ldp x19, x20, [sp, #16]",
    "ldp x29, x30, [sp], #48",
    ".cfi_def_cfa_offset 0",
    ".cfi_restore x19",
    ".cfi_restore x20",
    ".cfi_restore x21",
    ".cfi_restore x29",
    ".cfi_restore x30",
    "br x16",
    "3:",
    ".cfi_restore_state",
    "ldr x21, [sp, #32]",
    "ldp x19, x20, [sp, #16]",
    "ldp x29, x30, [sp], #48",
    ".cfi_def_cfa_offset 0",
    ".cfi_restore x19",
    ".cfi_restore x20",
    ".cfi_restore x21",
    ".cfi_restore x29",
    ".cfi_restore x30",
    "ret",
    ".cfi_endproc",
    ".size heapdrome_new_or_throw, . - heapdrome_new_or_throw",
    ".popsection",
    thrower = sym thrower,
);

// Calls `heapdrome_new_or_throw`, and returns null if that throws. Only this call can throw in this
// frame, so `catch_all` needs no tables. `catch_all` makes the unwinder resume at the frame's
// second exit, `heapdrome_new_caught`, with the exception in the first result register.
#[cfg(target_arch = "x86_64")]
core::arch::global_asm!(
    ".weak __cxa_begin_catch",
    ".weak __cxa_end_catch",
    ".pushsection .text.heapdrome_new_or_null, \"ax\", @progbits",
    ".globl heapdrome_new_or_null",
    ".hidden heapdrome_new_or_null",
    ".type heapdrome_new_or_null, @function",
    ".globl heapdrome_new_caught",
    ".hidden heapdrome_new_caught",
    ".p2align 4",
    "heapdrome_new_or_null:",
    ".cfi_startproc",
    ".cfi_personality 0x1b, {catch_all}",
    "push rbx",
    ".cfi_adjust_cfa_offset 8",
    "call heapdrome_new_or_throw",
    "pop rbx",
    ".cfi_remember_state",
    ".cfi_adjust_cfa_offset -8",
    "ret",
    "heapdrome_new_caught:",
    ".cfi_restore_state",
    "mov rdi, rax",
    "call qword ptr [rip + __cxa_begin_catch@GOTPCREL]",
    "call qword ptr [rip + __cxa_end_catch@GOTPCREL]",
    "xor eax, eax",
    "pop rbx",
    ".cfi_adjust_cfa_offset -8",
    "ret",
    ".cfi_endproc",
    ".size heapdrome_new_or_null, . - heapdrome_new_or_null",
    ".popsection",
    catch_all = sym catch_all,
);

#[cfg(target_arch = "aarch64")]
core::arch::global_asm!(
    ".weak __cxa_begin_catch",
    ".weak __cxa_end_catch",
    ".pushsection .text.heapdrome_new_or_null, \"ax\", %progbits",
    ".globl heapdrome_new_or_null",
    ".hidden heapdrome_new_or_null",
    ".type heapdrome_new_or_null, %function",
    ".globl heapdrome_new_caught",
    ".hidden heapdrome_new_caught",
    ".p2align 4",
    "heapdrome_new_or_null:",
    ".cfi_startproc",
    ".cfi_personality 0x1b, {catch_all}",
    "stp x29, x30, [sp, #-16]!",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset x29, -16",
    ".cfi_offset x30, -8",
    "bl heapdrome_new_or_throw",
    "ldp x29, x30, [sp], #16",
    ".cfi_remember_state",
    ".cfi_def_cfa_offset 0",
    ".cfi_restore x29",
    ".cfi_restore x30",
    "ret",
    "heapdrome_new_caught:",
    ".cfi_restore_state",
    "adrp x8, :got:__cxa_begin_catch",
    "ldr x8, [x8, :got_lo12:__cxa_begin_catch]",
    "blr x8",
    "adrp x8, :got:__cxa_end_catch",
    "ldr x8, [x8, :got_lo12:__cxa_end_catch]",
    "blr x8",
    "mov x0, xzr",
    "ldp x29, x30, [sp], #16",
    ".cfi_def_cfa_offset 0",
    ".cfi_restore x29",
    ".cfi_restore x30",
    "ret",
    ".cfi_endproc",
    ".size heapdrome_new_or_null, . - heapdrome_new_or_null",
    ".popsection",
    catch_all = sym catch_all,
);

unsafe extern "C" {
    fn heapdrome_new_or_null(size: usize, alignment: usize, attempt: Attempt) -> *mut c_void;
    fn heapdrome_new_caught();
}

// Constants of the unwinder's ABI for the personality function below.
const SEARCH_PHASE: c_int = 1;
const HANDLER_FRAME: c_int = 4;
const HANDLER_FOUND: c_int = 6;
const INSTALL_CONTEXT: c_int = 7;
const CONTINUE_UNWIND: c_int = 8;

/// Personality function of `heapdrome_new_or_null`. Catches every exception.
unsafe extern "C" fn catch_all(
    _version: c_int,
    actions: c_int,
    _class: u64,
    exception: *mut c_void,
    context: *mut c_void,
) -> c_int {
    if actions & SEARCH_PHASE != 0 {
        return HANDLER_FOUND;
    }
    if actions & HANDLER_FRAME == 0 {
        return CONTINUE_UNWIND;
    }
    let Some((set_register, set_address)) = unwinder() else {
        return CONTINUE_UNWIND;
    };
    // SAFETY: the unwinder passed its own context. On both architectures, the code at the
    // resumption address expects the exception in register 0.
    unsafe {
        set_register(context, 0, exception.addr());
        set_address(context, (heapdrome_new_caught as *const ()).addr());
    }
    INSTALL_CONTEXT
}

type SetRegister = unsafe extern "C" fn(*mut c_void, c_int, usize);
type SetAddress = unsafe extern "C" fn(*mut c_void, usize);

/// Returns two functions of the process's unwinder, against which this library is not linked;
/// `None` if it finds no unwinder.
fn unwinder() -> Option<(SetRegister, SetAddress)> {
    let set_register = find(c"_Unwind_SetGR", c"libgcc_s.so.1")?;
    let set_address = find(c"_Unwind_SetIP", c"libgcc_s.so.1")?;
    // SAFETY: the platform's ABI defines the types of the functions with these names.
    unsafe {
        Some((
            core::mem::transmute::<*mut c_void, SetRegister>(set_register.as_ptr()),
            core::mem::transmute::<*mut c_void, SetAddress>(set_address.as_ptr()),
        ))
    }
}

/// Returns a function from the default scope, or from `library` if the process has loaded it, for
/// example for a plugin. Returns `None` if neither has the function.
fn find(name: &CStr, library: &CStr) -> Option<NonNull<c_void>> {
    // SAFETY: the names are NUL-terminated. RTLD_NOLOAD runs no code. The handle is never closed,
    // so the function is not unloaded.
    unsafe {
        NonNull::new(libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr())).or_else(|| {
            let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
            let handle = NonNull::new(libc::dlopen(library.as_ptr(), flags))?;
            NonNull::new(libc::dlsym(handle.as_ptr(), name.as_ptr()))
        })
    }
}

#[cfg(panic = "unwind")]
unsafe extern "C-unwind" {
    fn heapdrome_new_or_throw(size: usize, alignment: usize, attempt: Attempt) -> *mut c_void;
}
// If this crate is built without unwinding, `extern "C"` suffices: when the function throws, the
// stack has no Rust frame of this crate.
#[cfg(not(panic = "unwind"))]
unsafe extern "C" {
    fn heapdrome_new_or_throw(size: usize, alignment: usize, attempt: Attempt) -> *mut c_void;
}

/// Returns the function that throws `std::bad_alloc`. Aborts the process if there is none. A
/// program that calls `operator new` has a C++ runtime. That runtime may lie outside the default
/// scope if only a plugin uses it.
extern "C" fn thrower() -> *const c_void {
    let found = find(c"_ZSt17__throw_bad_allocv", c"libstdc++.so.6")
        .or_else(|| find(c"_ZNSt3__117__throw_bad_allocEv", c"libc++.so.1"));
    if let Some(found) = found {
        return found.as_ptr();
    }
    write_error(b"out of memory in operator new, and no C++ runtime to throw std::bad_alloc\n");
    abort()
}

extern "C" fn attempt<A: MallocAbi>(size: usize, alignment: usize) -> *mut c_void {
    if !alignment.is_power_of_two() {
        return null_mut();
    }
    let fast = if alignment > MIN_ALIGNMENT && size <= MAX_SIZE {
        A::allocate_aligned_fast(size, alignment)
    } else {
        None
    };
    // Preserves errno, which operator new must not change: otherwise ENOMEM would remain after a
    // new-handler has freed memory.
    let block = fast.or_else(|| keeping_errno(|| allocate::<A>(size, alignment)));
    block.map_or(null_mut(), |block| block.as_ptr().cast())
}

/// Implements `operator new(size)`.
#[inline(always)]
pub fn new_or_throw<A: MallocAbi>(size: usize) -> *mut c_void {
    match A::allocate_fast(size) {
        Some(block) => block.as_ptr().cast(),
        None => align_or_throw::<A>(size, MIN_ALIGNMENT),
    }
}

/// Implements `operator new(size, alignment)`.
#[inline(always)]
pub fn align_or_throw<A: MallocAbi>(size: usize, alignment: usize) -> *mut c_void {
    // SAFETY: the function has the declared signature and calls `attempt` with the same arguments.
    unsafe { heapdrome_new_or_throw(size, alignment, attempt::<A>) }
}

/// Implements `operator new(size, nothrow)`.
#[inline(always)]
pub fn new_or_null<A: MallocAbi>(size: usize) -> *mut c_void {
    match A::allocate_fast(size) {
        Some(block) => block.as_ptr().cast(),
        None => align_or_null::<A>(size, MIN_ALIGNMENT),
    }
}

/// Implements `operator new(size, alignment, nothrow)`.
pub fn align_or_null<A: MallocAbi>(size: usize, alignment: usize) -> *mut c_void {
    let block = attempt::<A>(size, alignment);
    if !block.is_null() || !has_new_handler() {
        return block;
    }
    // SAFETY: the function has the declared signature, calls `attempt` with the same arguments, and
    // catches exceptions.
    unsafe { heapdrome_new_or_null(size, alignment, attempt::<A>) }
}

/// Returns whether the program has installed a new-handler. Without one, no exception need be
/// thrown and caught.
fn has_new_handler() -> bool {
    let found: *const c_void;
    // SAFETY: the linker creates a GOT slot for the weak symbol, and the loader fills it before
    // this code runs. The load changes no memory.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        core::arch::asm!(
            "mov {}, qword ptr [rip + _ZSt15get_new_handlerv@GOTPCREL]",
            out(reg) found,
            options(pure, readonly, nostack, preserves_flags)
        );
        #[cfg(target_arch = "aarch64")]
        core::arch::asm!(
            "adrp {0}, :got:_ZSt15get_new_handlerv",
            "ldr {0}, [{0}, :got_lo12:_ZSt15get_new_handlerv]",
            out(reg) found,
            options(pure, readonly, nostack, preserves_flags)
        );
    }
    // SAFETY: the slot holds null or the address of std::get_new_handler, which has this type.
    let get_new_handler = unsafe {
        core::mem::transmute::<*const c_void, Option<extern "C" fn() -> *mut c_void>>(found)
    };
    get_new_handler.is_some_and(|get_new_handler| !get_new_handler().is_null())
}
