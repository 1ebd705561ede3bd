//! Passages: the code that calls run through if every call is recorded. Calls whose stack may be
//! recorded run through [`crate::passages`] instead.
//!
//! A timed call runs through the same code, with readings of the processor's counter before and
//! after it.

use core::mem::offset_of;

use crate::slots::{Slot, TIMED};
use crate::thread::Thread;
use crate::timing::{self, TimedCall};
use crate::unwinding::personality;

// Reads the processor's counter into rax, after all earlier instructions have completed. Clobbers
// rdx.
#[cfg(target_arch = "x86_64")]
macro_rules! read_counter {
    () => {
        "lfence\nrdtsc\nshl rdx, 32\nor rax, rdx"
    };
}

// Reads the processor's counter into x9, after all earlier instructions have completed.
#[cfg(target_arch = "aarch64")]
macro_rules! read_counter {
    () => {
        "isb\nmrs x9, cntvct_el0"
    };
}

// Counts a call towards the next timed call. Sets the condition "lower" if the countdown has ended,
// so that `is_timed` decides about this call. Clobbers x9 and x10.
#[cfg(target_arch = "aarch64")]
macro_rules! count_down {
    () => {
        concat!(
            "adrp x9, :gottprel:heapdrome_last\n",
            "ldr x9, [x9, :gottprel_lo12:heapdrome_last]\n",
            "mrs x10, tpidr_el0\n",
            "add x9, x9, x10\n",
            "ldr w10, [x9, #{until_timed}]\n",
            "subs w10, w10, #1\n",
            "str w10, [x9, #{until_timed}]",
        )
    };
}

/// Passes a call on and records its effect. An entry point jumps here with its slot in r11.
///
/// An allocator's `operator new` may pass the call on to malloc by a jump. The call to malloc then
/// returns to this function, and is not recorded a second time.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
#[allow(clippy::too_many_lines, reason = "a line holds one instruction")]
pub unsafe extern "C" fn record() {
    core::arch::naked_asm!(
        ".cfi_startproc",
        ".cfi_personality 0x1b, {personality}",
        "endbr64",
        "lea rax, [rip + 3f]",
        "cmp rax, [rsp]",
        "je 4f",
        "sub rsp, 40",
        ".cfi_adjust_cfa_offset 40",
        "mov [rsp], rdi",
        "mov [rsp + 8], rsi",
        "mov [rsp + 16], rdx",
        "mov [rsp + 24], r11",
        "mov rax, [r11 + {before}]",
        "test rax, rax",
        "je 2f",
        "call rax",
        "mov rdi, [rsp]",
        "mov rsi, [rsp + 8]",
        "mov rdx, [rsp + 16]",
        "mov r11, [rsp + 24]",
        "2:",
        "mov r10, qword ptr [rip + heapdrome_last@GOTTPOFF]",
        "sub dword ptr fs:[r10 + {until_timed}], 1",
        "jb 5f",
        "6:",
        "call [r11 + {next}]",
        "3:",
        "mov rsi, rax",
        "mov rdi, rsp",
        "mov rax, [rsp + 24]",
        "call [rax + {after}]",
        "add rsp, 40",
        ".cfi_adjust_cfa_offset -40",
        "ret",
        "4:",
        "jmp [r11 + {next}]",
        "5:",
        ".cfi_adjust_cfa_offset 40",
        "call {is_timed}",
        "mov rdi, [rsp]",
        "mov rsi, [rsp + 8]",
        "mov r11, [rsp + 24]",
        "test al, al",
        "je 7f",
        "lea rax, [r11 + {timed}]",
        "mov [rsp + 24], rax",
        read_counter!(),
        "mov [rsp + {began}], rax",
        "7:",
        "mov rdx, [rsp + 16]",
        "jmp 6b",
        ".cfi_endproc",
        before = const offset_of!(Slot, before),
        next = const offset_of!(Slot, next),
        after = const offset_of!(Slot, after),
        timed = const TIMED,
        until_timed = const offset_of!(Thread, until_timed),
        began = const offset_of!(TimedCall, began),
        is_timed = sym timing::is_timed,
        personality = sym personality,
    )
}

/// Records that a block is freed, and jumps to the allocator, which returns directly to the caller.
/// If the call is timed, calls the allocator instead.
///
/// An allocator's `operator delete` may pass the call on to free by a jump. The entry point of free
/// then compares its stack pointer and return address with those of the latest counted entry. A
/// timed call changes both, so it stores the changed ones as the latest.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
#[allow(clippy::too_many_lines, reason = "a line holds one instruction")]
pub unsafe extern "C" fn record_free() {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "endbr64",
        "sub rsp, 40",
        ".cfi_adjust_cfa_offset 40",
        "mov [rsp], rdi",
        "mov [rsp + 8], rsi",
        "mov [rsp + 16], rdx",
        "mov [rsp + 24], r11",
        "mov r10, qword ptr [rip + heapdrome_last@GOTTPOFF]",
        "sub dword ptr fs:[r10 + {until_timed}], 1",
        "jb 3f",
        "2:",
        "call [r11 + {before}]",
        "mov r11, [rsp + 24]",
        "mov rdi, [rsp]",
        "mov rsi, [rsp + 8]",
        "mov rdx, [rsp + 16]",
        "add rsp, 40",
        ".cfi_adjust_cfa_offset -40",
        "jmp [r11 + {next}]",
        "3:",
        ".cfi_adjust_cfa_offset 40",
        "call {is_timed}",
        "mov rdi, [rsp]",
        "mov r11, [rsp + 24]",
        "test al, al",
        "je 2b",
        "sub rsp, 16",
        ".cfi_adjust_cfa_offset 16",
        "mov r10, qword ptr [rip + heapdrome_last@GOTTPOFF]",
        "lea rax, [rsp - 8]",
        "lea rcx, [rip + 4f]",
        "mov fs:[r10], rax",
        "mov fs:[r10 + 8], rcx",
        "mov fs:[r10 + 16], r11",
        read_counter!(),
        "mov [rsp], rax",
        "call [r11 + {before}]",
        "mov rdi, [rsp + 16]",
        "mov rsi, [rsp + 24]",
        "mov r11, [rsp + 40]",
        read_counter!(),
        "mov [rsp + 8], rax",
        "mov rdx, [rsp + 32]",
        "call [r11 + {next}]",
        "4:",
        "mov rdi, rsp",
        "call {end_free}",
        "add rsp, 56",
        ".cfi_adjust_cfa_offset -56",
        "ret",
        ".cfi_endproc",
        before = const offset_of!(Slot, before),
        next = const offset_of!(Slot, next),
        until_timed = const offset_of!(Thread, until_timed),
        is_timed = sym timing::is_timed,
        end_free = sym timing::end_free,
    )
}

/// Passes a call on and records its effect. An entry point jumps here with its slot in x16.
///
/// An allocator's `operator new` may pass the call on to malloc by a jump. The call to malloc then
/// returns to this function, and is not recorded a second time.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
#[allow(clippy::too_many_lines, reason = "a line holds one instruction")]
pub unsafe extern "C" fn record() {
    core::arch::naked_asm!(
        ".cfi_startproc",
        ".cfi_personality 0x1b, {personality}",
        "hint #34",
        "adr x9, 3f",
        "cmp x9, x30",
        "b.eq 4f",
        "sub sp, sp, #48",
        ".cfi_adjust_cfa_offset 48",
        "str x30, [sp, #40]",
        ".cfi_rel_offset x30, 40",
        "stp x0, x1, [sp]",
        "stp x2, x16, [sp, #16]",
        "ldr x9, [x16, #{before}]",
        "cbz x9, 2f",
        "blr x9",
        "ldp x0, x1, [sp]",
        "ldp x2, x16, [sp, #16]",
        "2:",
        count_down!(),
        "b.lo 5f",
        "6:",
        "ldr x9, [x16, #{next}]",
        "blr x9",
        "3:",
        "mov x1, x0",
        "mov x0, sp",
        "ldr x9, [sp, #24]",
        "ldr x9, [x9, #{after}]",
        "blr x9",
        "ldr x30, [sp, #40]",
        ".cfi_restore x30",
        "add sp, sp, #48",
        ".cfi_adjust_cfa_offset -48",
        "ret",
        "4:",
        "ldr x16, [x16, #{next}]",
        "br x16",
        "5:",
        ".cfi_adjust_cfa_offset 48",
        ".cfi_rel_offset x30, 40",
        "bl {is_timed}",
        "mov w9, w0",
        "ldp x0, x1, [sp]",
        "ldp x2, x16, [sp, #16]",
        "cbz w9, 6b",
        "add x9, x16, #{timed}",
        "str x9, [sp, #24]",
        read_counter!(),
        "str x9, [sp, #{began}]",
        "b 6b",
        ".cfi_endproc",
        before = const offset_of!(Slot, before),
        next = const offset_of!(Slot, next),
        after = const offset_of!(Slot, after),
        timed = const TIMED,
        until_timed = const offset_of!(Thread, until_timed),
        began = const offset_of!(TimedCall, began),
        is_timed = sym timing::is_timed,
        personality = sym personality,
    )
}

/// Records that a block is freed, and jumps to the allocator, which returns directly to the caller.
/// If the call is timed, calls the allocator instead.
///
/// An allocator's `operator delete` may pass the call on to free by a jump. The entry point of free
/// then compares its stack pointer and return address with those of the latest counted entry. A
/// timed call changes both, so it stores the changed ones as the latest.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
#[allow(clippy::too_many_lines, reason = "a line holds one instruction")]
pub unsafe extern "C" fn record_free() {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "hint #34",
        "sub sp, sp, #48",
        ".cfi_adjust_cfa_offset 48",
        "str x30, [sp, #32]",
        ".cfi_rel_offset x30, 32",
        "stp x0, x1, [sp]",
        "stp x2, x16, [sp, #16]",
        count_down!(),
        "b.lo 3f",
        "2:",
        "ldr x9, [x16, #{before}]",
        "blr x9",
        "ldp x0, x1, [sp]",
        "ldp x2, x16, [sp, #16]",
        "ldr x30, [sp, #32]",
        ".cfi_restore x30",
        "add sp, sp, #48",
        ".cfi_adjust_cfa_offset -48",
        "ldr x16, [x16, #{next}]",
        "br x16",
        "3:",
        ".cfi_adjust_cfa_offset 48",
        ".cfi_rel_offset x30, 32",
        "bl {is_timed}",
        "mov w9, w0",
        "ldp x0, x1, [sp]",
        "ldp x2, x16, [sp, #16]",
        "cbz w9, 2b",
        "sub sp, sp, #16",
        ".cfi_adjust_cfa_offset 16",
        "adrp x9, :gottprel:heapdrome_last",
        "ldr x9, [x9, :gottprel_lo12:heapdrome_last]",
        "mrs x10, tpidr_el0",
        "add x9, x9, x10",
        "mov x10, sp",
        "adr x11, 4f",
        "stp x10, x11, [x9]",
        "str x16, [x9, #16]",
        read_counter!(),
        "str x9, [sp]",
        "ldr x9, [x16, #{before}]",
        "blr x9",
        "ldp x0, x1, [sp, #16]",
        "ldp x2, x16, [sp, #32]",
        read_counter!(),
        "str x9, [sp, #8]",
        "ldr x9, [x16, #{next}]",
        "blr x9",
        "4:",
        "mov x0, sp",
        "bl {end_free}",
        "ldr x30, [sp, #48]",
        ".cfi_restore x30",
        "add sp, sp, #64",
        ".cfi_adjust_cfa_offset -64",
        "ret",
        ".cfi_endproc",
        before = const offset_of!(Slot, before),
        next = const offset_of!(Slot, next),
        until_timed = const offset_of!(Thread, until_timed),
        is_timed = sym timing::is_timed,
        end_free = sym timing::end_free,
    )
}
