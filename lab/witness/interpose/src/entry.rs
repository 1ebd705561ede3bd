//! Entry points: the functions of the allocation ABI that programs call.
//!
//! Each entry point jumps to the code whose address is in its slot. Until the slot is filled, that
//! code finds the function that serves the calls. Afterwards the code [tests the
//! caller](crate::counting). If glibc serves the calls and they are recorded, the code is instead
//! the passage that records them.

use core::mem::offset_of;

use crate::resolve::resolve_slot;
use crate::slots::{SLOT_BYTES, SLOTS, Slot};

// Defines an entry point, which jumps to its slot's code with the slot in r11.
#[cfg(target_arch = "x86_64")]
macro_rules! entry {
    ($index:expr, $name:literal, $function:ident) => {
        #[unsafe(export_name = $name)]
        #[unsafe(naked)]
        unsafe extern "C" fn $function() {
            core::arch::naked_asm!(
                "endbr64",
                "lea r11, [rip + {slots} + {offset}]",
                "notrack jmp [r11 + {first}]",
                slots = sym SLOTS,
                offset = const $index * SLOT_BYTES,
                first = const offset_of!(Slot, first),
            )
        }
    };
}

/// Finds the function that serves an entry point, and jumps to the slot's new code. The slot is in
/// r11.
#[cfg(target_arch = "x86_64")]
#[unsafe(export_name = "heapdrome_unresolved")]
#[unsafe(naked)]
unsafe extern "C" fn unresolved() {
    core::arch::naked_asm!(
        ".hidden heapdrome_unresolved",
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r11",
        "sub rsp, 8",
        "mov rdi, r11",
        "call {resolve}",
        "add rsp, 8",
        "pop r11",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "notrack jmp [r11 + {first}]",
        resolve = sym resolve_slot,
        first = const offset_of!(Slot, first),
    )
}

// Defines an entry point, which jumps to its slot's code with the slot in x16.
#[cfg(target_arch = "aarch64")]
macro_rules! entry {
    ($index:expr, $name:literal, $function:ident) => {
        #[unsafe(export_name = $name)]
        #[unsafe(naked)]
        unsafe extern "C" fn $function() {
            core::arch::naked_asm!(
                "hint #34",
                "adrp x16, {slots} + {offset}",
                "add x16, x16, :lo12:{slots} + {offset}",
                "add x17, x16, #{first}",
                "ldar x17, [x17]",
                "br x17",
                slots = sym SLOTS,
                offset = const $index * SLOT_BYTES,
                first = const offset_of!(Slot, first),
            )
        }
    };
}

/// Finds the function that serves an entry point, and jumps to the slot's new code. The slot is in
/// x16.
#[cfg(target_arch = "aarch64")]
#[unsafe(export_name = "heapdrome_unresolved")]
#[unsafe(naked)]
unsafe extern "C" fn unresolved() {
    core::arch::naked_asm!(
        ".hidden heapdrome_unresolved",
        "hint #34",
        "stp x29, x30, [sp, #-80]!",
        "stp x0, x1, [sp, #16]",
        "stp x2, x3, [sp, #32]",
        "stp x4, x8, [sp, #48]",
        "str x16, [sp, #64]",
        "mov x0, x16",
        "bl {resolve}",
        "ldr x16, [sp, #64]",
        "ldp x4, x8, [sp, #48]",
        "ldp x2, x3, [sp, #32]",
        "ldp x0, x1, [sp, #16]",
        "ldp x29, x30, [sp], #80",
        "add x17, x16, #{first}",
        "ldar x17, [x17]",
        "br x17",
        resolve = sym resolve_slot,
        first = const offset_of!(Slot, first),
    )
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
