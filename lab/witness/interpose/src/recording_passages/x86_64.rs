//! Passages of recorded calls on x86-64.

use core::mem::offset_of;

use crate::large;
use crate::slots::{Slot, TIMED};
use crate::thread::Thread;
use crate::timing::{self, TimedCall};
use crate::unwinding::personality;

// Reads the processor's counter into rax, after all earlier instructions have completed. Clobbers
// rdx.
macro_rules! read_counter {
    () => {
        "lfence\nrdtsc\nshl rdx, 32\nor rax, rdx"
    };
}

// Defines a passage that loads the number of requested bytes into rcx and jumps to `record`. May
// clobber r8.
macro_rules! requesting {
    ($name:ident, $($into_rcx:literal)+) => {
        #[unsafe(naked)]
        pub(super) unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                $($into_rcx,)+
                "jmp {record}",
                record = sym record,
            )
        }
    };
}
requesting!(first, "mov rcx, rdi");
requesting!(second, "mov rcx, rsi");
requesting!(third, "mov rcx, rdx");

// Use the largest number if the product exceeds 64 bits.
requesting!(first_times_second, "mov rcx, rdi" "imul rcx, rsi" "mov r8, -1" "cmovo rcx, r8");
requesting!(second_times_third, "mov rcx, rsi" "imul rcx, rdx" "mov r8, -1" "cmovo rcx, r8");

/// Passes a call on and records its effect. Its slot is in r11, and the requested bytes are in rcx.
///
/// An allocator's `operator new` may pass the call on to malloc by a jump. The call to malloc then
/// returns to this function, and is not recorded a second time.
#[unsafe(naked)]
#[allow(clippy::too_many_lines, reason = "a line holds one instruction")]
unsafe extern "C" fn record() {
    core::arch::naked_asm!(
        ".cfi_startproc",
        ".cfi_personality 0x1b, {personality}",
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
        "mov [rsp + {began}], rcx",
        "call rax",
        "mov rdi, [rsp]",
        "mov rsi, [rsp + 8]",
        "mov rdx, [rsp + 16]",
        "mov r11, [rsp + 24]",
        "mov rcx, [rsp + {began}]",
        "2:",
        "cmp rcx, {large}",
        "jae 5f",
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
        "notrack jmp [r11 + {next}]",
        "5:",
        ".cfi_adjust_cfa_offset 40",
        "mov rdi, rsp",
        "mov rsi, rcx",
        "call {choose}",
        "mov rdi, [rsp]",
        "mov rsi, [rsp + 8]",
        "mov r11, [rsp + 24]",
        "add [rsp + 24], rax",
        "cmp eax, {timed}",
        "jne 7f",
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
        large = const large::LARGE,
        choose = sym timing::choose,
        personality = sym personality,
    )
}

/// Records that a block is freed, and jumps to the allocator, which returns directly to the caller.
/// If the call is timed, calls the allocator instead.
///
/// An allocator's `operator delete` may pass the call on to free by a jump. The entry point of free
/// then compares its stack pointer and return address with those of the latest counted entry. A
/// timed call changes both, so it stores the changed ones as the latest.
#[unsafe(naked)]
#[allow(clippy::too_many_lines, reason = "a line holds one instruction")]
pub unsafe extern "C" fn record_free() {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "sub rsp, 40",
        ".cfi_adjust_cfa_offset 40",
        "mov [rsp], rdi",
        "mov [rsp + 8], rsi",
        "mov [rsp + 16], rdx",
        "mov [rsp + 24], r11",
        "imul eax, edi, {factor}",
        "shr eax, {shift}",
        "lea r10, [rip + {places}]",
        "cmp [r10 + rax * 8], rdi",
        "je 5f",
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
        "notrack jmp [r11 + {next}]",
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
        "5:",
        ".cfi_adjust_cfa_offset 40",
        "call [r11 + {before}]",
        "sub rsp, 16",
        ".cfi_adjust_cfa_offset 16",
        "mov rdi, rsp",
        "mov rsi, [rsp + 16]",
        "call {begin_large_free}",
        "mov rdi, [rsp + 16]",
        "mov rsi, [rsp + 24]",
        "mov rdx, [rsp + 32]",
        "mov r11, [rsp + 40]",
        "mov r10, qword ptr [rip + heapdrome_last@GOTTPOFF]",
        "lea rax, [rsp - 8]",
        "lea rcx, [rip + 6f]",
        "mov fs:[r10], rax",
        "mov fs:[r10 + 8], rcx",
        "mov fs:[r10 + 16], r11",
        "call [r11 + {next}]",
        "6:",
        "mov rdi, rsp",
        "call {end_large_free}",
        "add rsp, 56",
        ".cfi_adjust_cfa_offset -56",
        "ret",
        ".cfi_endproc",
        before = const offset_of!(Slot, before),
        next = const offset_of!(Slot, next),
        until_timed = const offset_of!(Thread, until_timed),
        is_timed = sym timing::is_timed,
        end_free = sym timing::end_free,
        factor = const large::FACTOR,
        shift = const large::SHIFT,
        places = sym large::PLACES_OF_LARGE,
        begin_large_free = sym timing::begin_large_free,
        end_large_free = sym timing::end_large_free,
    )
}
