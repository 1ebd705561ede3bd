//! The entry points.
//!
//! Each is a jump, not a call: the function behind it finds the caller's registers and stack, so
//! that `operator new` may throw through it and that errno and every result pass unchanged.

//!
//! An object may pass a call on to another of its functions by a jump as well, as `operator new`
//! does to malloc. That second entry has the stack pointer and the return address of the first,
//! which each thread remembers, and is not counted. A loop that calls one function again and again
//! from one place also has them, but then the function is the same.

use crate::resolve::{SLOT_BYTES, SLOTS, resolve};

// What the thread's last counted entry had: stack pointer, return address and slot. Rust's own
// thread-local variables cannot be named in assembly.
core::arch::global_asm!(
    ".pushsection .tbss.heapdrome_last, \"awT\", %nobits",
    ".globl heapdrome_last",
    ".hidden heapdrome_last",
    ".type heapdrome_last, %object",
    ".size heapdrome_last, 24",
    ".p2align 3",
    "heapdrome_last:",
    ".zero 24",
    ".popsection",
);

#[cfg(target_arch = "x86_64")]
macro_rules! entry {
    ($index:expr, $name:literal, $function:ident) => {
        #[unsafe(export_name = $name)]
        #[unsafe(naked)]
        unsafe extern "C" fn $function() {
            core::arch::naked_asm!(
                "endbr64",
                "4:",
                "lea r11, [rip + {slots}]",
                "add r11, {offset}",
                "mov rax, [r11]",
                "test rax, rax",
                "je 2f",
                "mov r10, [rsp]",
                "sub r10, [r11 + 8]",
                "cmp r10, [r11 + 16]",
                "jb 3f",
                // No function here has more than three arguments: rcx and r8 are free.
                "mov r10, qword ptr [rip + heapdrome_last@GOTTPOFF]",
                "mov rcx, [rsp]",
                "cmp rsp, fs:[r10]",
                "jne 5f",
                "cmp rcx, fs:[r10 + 8]",
                "jne 5f",
                "mov r8, fs:[r10 + 16]",
                "cmp r8, r11",
                "je 5f",
                "mov r8, [r8 + 8]",
                "cmp r8, [r11 + 8]",
                "je 3f",
                "5:",
                "mov fs:[r10], rsp",
                "mov fs:[r10 + 8], rcx",
                "mov fs:[r10 + 16], r11",
                "mov r10, [r11 + 24]",
                "lock inc qword ptr [r10]",
                "3:",
                "jmp rax",
                "2:",
                "push rdi",
                "push rsi",
                "push rdx",
                "push rcx",
                "push r8",
                "mov edi, {index}",
                "call {resolve}",
                "pop r8",
                "pop rcx",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                "jmp 4b",
                slots = sym SLOTS,
                offset = const $index * SLOT_BYTES,
                index = const $index,
                resolve = sym resolve,
            )
        }
    };
}

#[cfg(target_arch = "aarch64")]
macro_rules! entry {
    ($index:expr, $name:literal, $function:ident) => {
        #[unsafe(export_name = $name)]
        #[unsafe(naked)]
        unsafe extern "C" fn $function() {
            core::arch::naked_asm!(
                "hint #34",
                "4:",
                "adrp x16, {slots}",
                "add x16, x16, :lo12:{slots}",
                "add x16, x16, #{offset}",
                "ldar x17, [x16]",
                "cbz x17, 2f",
                "ldp x9, x10, [x16, #8]",
                "sub x9, x30, x9",
                "cmp x9, x10",
                "b.lo 3f",
                "adrp x10, :gottprel:heapdrome_last",
                "ldr x10, [x10, :gottprel_lo12:heapdrome_last]",
                "mrs x9, tpidr_el0",
                "add x10, x10, x9",
                "mov x11, sp",
                "ldp x12, x13, [x10]",
                "cmp x11, x12",
                "b.ne 5f",
                "cmp x30, x13",
                "b.ne 5f",
                "ldr x12, [x10, #16]",
                "cmp x12, x16",
                "b.eq 5f",
                "ldr x12, [x12, #8]",
                "ldr x13, [x16, #8]",
                "cmp x12, x13",
                "b.eq 3f",
                "5:",
                "stp x11, x30, [x10]",
                "str x16, [x10, #16]",
                "ldr x10, [x16, #24]",
                "6:",
                "ldxr x9, [x10]",
                "add x9, x9, #1",
                "stxr w11, x9, [x10]",
                "cbnz w11, 6b",
                "3:",
                "br x17",
                "2:",
                "stp x29, x30, [sp, #-64]!",
                "stp x0, x1, [sp, #16]",
                "stp x2, x3, [sp, #32]",
                "stp x4, x8, [sp, #48]",
                "mov x0, #{index}",
                "bl {resolve}",
                "ldp x4, x8, [sp, #48]",
                "ldp x2, x3, [sp, #32]",
                "ldp x0, x1, [sp, #16]",
                "ldp x29, x30, [sp], #64",
                "b 4b",
                slots = sym SLOTS,
                offset = const $index * SLOT_BYTES,
                index = const $index,
                resolve = sym resolve,
            )
        }
    };
}

entry!(0, "malloc", malloc);
entry!(1, "calloc", calloc);
entry!(2, "realloc", realloc);
entry!(3, "reallocarray", reallocarray);
entry!(4, "free", free);
entry!(5, "cfree", cfree);
entry!(6, "memalign", memalign);
entry!(7, "posix_memalign", posix_memalign);
entry!(8, "aligned_alloc", aligned_alloc);
entry!(9, "valloc", valloc);
entry!(10, "pvalloc", pvalloc);
entry!(11, "malloc_usable_size", malloc_usable_size);
entry!(12, "free_sized", free_sized);
entry!(13, "free_aligned_sized", free_aligned_sized);
entry!(14, "_Znwm", new);
entry!(15, "_Znam", new_array);
entry!(16, "_ZnwmRKSt9nothrow_t", new_nothrow);
entry!(17, "_ZnamRKSt9nothrow_t", new_array_nothrow);
entry!(18, "_ZnwmSt11align_val_t", new_aligned);
entry!(19, "_ZnamSt11align_val_t", new_array_aligned);
entry!(
    20,
    "_ZnwmSt11align_val_tRKSt9nothrow_t",
    new_aligned_nothrow
);
entry!(
    21,
    "_ZnamSt11align_val_tRKSt9nothrow_t",
    new_array_aligned_nothrow
);
entry!(22, "_ZdlPv", delete);
entry!(23, "_ZdaPv", delete_array);
entry!(24, "_ZdlPvm", delete_sized);
entry!(25, "_ZdaPvm", delete_array_sized);
entry!(26, "_ZdlPvRKSt9nothrow_t", delete_nothrow);
entry!(27, "_ZdaPvRKSt9nothrow_t", delete_array_nothrow);
entry!(28, "_ZdlPvSt11align_val_t", delete_aligned);
entry!(29, "_ZdaPvSt11align_val_t", delete_array_aligned);
entry!(30, "_ZdlPvmSt11align_val_t", delete_sized_aligned);
entry!(31, "_ZdaPvmSt11align_val_t", delete_array_sized_aligned);
entry!(
    32,
    "_ZdlPvSt11align_val_tRKSt9nothrow_t",
    delete_aligned_nothrow
);
entry!(
    33,
    "_ZdaPvSt11align_val_tRKSt9nothrow_t",
    delete_array_aligned_nothrow
);
