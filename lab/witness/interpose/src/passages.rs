//! Passages: the code that calls run through if a recording samples blocks or takes stacks.
//!
//! If blocks are sampled, a call that is not recorded jumps to the allocator after a few
//! instructions, and returns directly to its caller. Before the jump, a call that makes a block
//! subtracts the requested bytes from the distance to the next sample, and a free tests whether the
//! block is sampled. realloc does both; reallocarray always runs through [`consider`]. If every
//! block is recorded, every call that requests a block runs through [`consider`], because its stack
//! may be recorded.

use core::mem::offset_of;

use crate::calls::{Deed, Size, deed};
use crate::control;
use crate::marks;
use crate::recording;
use crate::sampling::{SampledCall, after, before, personality};
use crate::slots::Slot;
use crate::thread::Thread;

/// Size in bytes of a call's frame, below the return address.
#[cfg(target_arch = "x86_64")]
const FRAME: usize = 56;

/// Size in bytes of a call's frame.
#[cfg(target_arch = "aarch64")]
const FRAME: usize = 64;

/// Returns the passage for calls to a function; `None` if they are not recorded.
pub fn passage(index: usize) -> Option<usize> {
    let (samples, takes_stacks) = (marks::is_on(), control::stack_bytes() != 0);
    Some(match deed(index) {
        Deed::Nothing => return None,
        Deed::Frees if samples => free as *const () as usize,
        Deed::Makes(Size::First) if samples => first as *const () as usize,
        Deed::Makes(Size::Second) if samples => second as *const () as usize,
        Deed::Makes(_) if samples => product as *const () as usize,
        Deed::Stores(_) if samples => third as *const () as usize,
        Deed::Resizes(Size::Second) if samples => resize as *const () as usize,
        Deed::Makes(_) | Deed::Stores(_) | Deed::Resizes(_) if samples || takes_stacks => {
            consider as *const () as usize
        }
        _ => return recording::passage(index),
    })
}

// Defines a passage that subtracts the requested bytes from the thread's distance to the next
// sample. It jumps to `consider` if the request reaches the sample, and to the allocator otherwise.
// `$into_rcx` loads the number of bytes into rcx. Clobbers rcx and r10; `product` also clobbers r8.
#[cfg(target_arch = "x86_64")]
macro_rules! countdown {
    ($name:ident, $($into_rcx:literal)+) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                $($into_rcx,)+
                "mov r10, qword ptr [rip + heapdrome_last@GOTTPOFF]",
                // A request for no bytes counts as one byte.
                "cmp rcx, 1",
                "adc rcx, 0",
                "sub qword ptr fs:[r10 + {until}], rcx",
                "jb {consider}",
                "notrack jmp [r11 + {served}]",
                until = const offset_of!(Thread, until),
                consider = sym consider,
                served = const offset_of!(Slot, served),
            )
        }
    };
}

#[cfg(target_arch = "x86_64")]
countdown!(first, "mov rcx, rdi");
#[cfg(target_arch = "x86_64")]
countdown!(second, "mov rcx, rsi");
#[cfg(target_arch = "x86_64")]
countdown!(third, "mov rcx, rdx");
// Use the largest number if the product exceeds 64 bits.
#[cfg(target_arch = "x86_64")]
countdown!(product, "mov rcx, rdi" "imul rcx, rsi" "mov r8, -1" "cmovo rcx, r8");

/// Passes a free on, and records it if the block is sampled. An entry point jumps here with its
/// slot in r11.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn free() {
    core::arch::naked_asm!(
        "imul eax, edi, {factor}",
        "shr eax, {shift}",
        "lea r10, [rip + {filter}]",
        "cmp byte ptr [r10 + rax], 0",
        "jne 3f",
        "2:",
        "notrack jmp [r11 + {served}]",
        "3:",
        "mov rax, rdi",
        "mov r10, qword ptr [rip + {directory}]",
        "shr rax, {chunk_bits}",
        "cmp rax, {chunks}",
        "jae 2b",
        "mov r10, [r10 + rax * 8]",
        "test r10, r10",
        "je 2b",
        "mov ecx, edi",
        "and ecx, {chunk_mask}",
        "shr ecx, {granule_bits}",
        "mov eax, ecx",
        "shr eax, {word_bits}",
        "mov eax, [r10 + rax * 4]",
        "bt eax, ecx",
        "jc {consider}",
        "notrack jmp [r11 + {served}]",
        factor = const marks::FACTOR,
        shift = const marks::SHIFT,
        filter = sym marks::FILTER,
        directory = sym marks::DIRECTORY,
        chunk_bits = const marks::CHUNK_BITS,
        chunks = const marks::CHUNKS,
        chunk_mask = const (1 << marks::CHUNK_BITS) - 1,
        granule_bits = const marks::GRANULE_BITS,
        word_bits = const marks::WORD_BITS,
        consider = sym consider,
        served = const offset_of!(Slot, served),
    )
}

/// Passes a resize on, and records it if the old block or the new one is sampled. An entry point
/// jumps here with its slot in r11. Only the first two arguments, an address and a size, are used.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn resize() {
    core::arch::naked_asm!(
        "imul eax, edi, {factor}",
        "shr eax, {shift}",
        "lea r10, [rip + {filter}]",
        "cmp byte ptr [r10 + rax], 0",
        "jne {consider}",
        "mov rcx, rsi",
        "mov r10, qword ptr [rip + heapdrome_last@GOTTPOFF]",
        "cmp rcx, 1",
        "adc rcx, 0",
        "sub qword ptr fs:[r10 + {until}], rcx",
        "jb 2f",
        "notrack jmp [r11 + {served}]",
        // Undo the countdown, because `before` counts the requested bytes itself.
        "2:",
        "add qword ptr fs:[r10 + {until}], rcx",
        "jmp {consider}",
        factor = const marks::FACTOR,
        shift = const marks::SHIFT,
        filter = sym marks::FILTER,
        until = const offset_of!(Thread, until),
        consider = sym consider,
        served = const offset_of!(Slot, served),
    )
}

/// Passes a call on that may have to be recorded. Its slot is in r11.
///
/// An allocator's `operator new` may pass the call on to malloc by a jump. The call to malloc then
/// returns to this function, and is not recorded a second time.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn consider() {
    core::arch::naked_asm!(
        ".cfi_startproc",
        ".cfi_personality 0x1b, {personality}",
        "lea rax, [rip + 3f]",
        "cmp rax, [rsp]",
        "je 4f",
        "sub rsp, {frame}",
        ".cfi_adjust_cfa_offset {frame}",
        "mov [rsp], rdi",
        "mov [rsp + 8], rsi",
        "mov [rsp + 16], rdx",
        "mov [rsp + 24], r11",
        "mov [rsp + {frame_pointer}], rbp",
        "mov rdi, rsp",
        "call {before}",
        "mov rdi, [rsp]",
        "mov rsi, [rsp + 8]",
        "mov rdx, [rsp + 16]",
        "mov r11, [rsp + 24]",
        "test al, al",
        "je 5f",
        "call [r11 + {served}]",
        "3:",
        "mov rsi, rax",
        "mov rdi, rsp",
        "call {after}",
        "add rsp, {frame}",
        ".cfi_adjust_cfa_offset -{frame}",
        "ret",
        "5:",
        ".cfi_adjust_cfa_offset {frame}",
        "add rsp, {frame}",
        ".cfi_adjust_cfa_offset -{frame}",
        "4:",
        "notrack jmp [r11 + {served}]",
        ".cfi_endproc",
        frame = const FRAME,
        frame_pointer = const offset_of!(SampledCall, frame_pointer),
        before = sym before,
        after = sym after,
        personality = sym personality,
        served = const offset_of!(Slot, served),
    )
}

// Defines a passage that subtracts the requested bytes from the thread's distance to the next
// sample. It jumps to `consider` if the request reaches the sample, and to the allocator otherwise.
// `$into_x12` loads the number of bytes into x12. Clobbers x9, x10, x12 and x17; `product` also
// clobbers x13.
#[cfg(target_arch = "aarch64")]
macro_rules! countdown {
    ($name:ident, $($into_x12:literal)+) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                "hint #34",
                $($into_x12,)+
                "adrp x10, :gottprel:heapdrome_last",
                "ldr x10, [x10, :gottprel_lo12:heapdrome_last]",
                "mrs x9, tpidr_el0",
                "add x10, x10, x9",
                // A request for no bytes counts as one byte.
                "cmp x12, #1",
                "cinc x12, x12, lo",
                "ldr x9, [x10, #{until}]",
                "subs x9, x9, x12",
                "str x9, [x10, #{until}]",
                "b.lo 2f",
                "ldr x17, [x16, #{served}]",
                "br x17",
                "2:",
                "b {consider}",
                until = const offset_of!(Thread, until),
                consider = sym consider,
                served = const offset_of!(Slot, served),
            )
        }
    };
}

#[cfg(target_arch = "aarch64")]
countdown!(first, "mov x12, x0");
#[cfg(target_arch = "aarch64")]
countdown!(second, "mov x12, x1");
#[cfg(target_arch = "aarch64")]
countdown!(third, "mov x12, x2");
// Use the largest number if the product exceeds 64 bits.
#[cfg(target_arch = "aarch64")]
countdown!(
    product,
    "umulh x13, x0, x1"
    "mul x12, x0, x1"
    "cmp x13, #0"
    "csinv x12, x12, xzr, eq"
);

/// Passes a free on, and records it if the block is sampled. An entry point jumps here with its
/// slot in x16.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn free() {
    core::arch::naked_asm!(
        "hint #34",
        "mov w9, #{factor_low}",
        "movk w9, #{factor_high}, lsl #16",
        "mul w9, w9, w0",
        "lsr w9, w9, #{shift}",
        "adrp x10, {filter}",
        "add x10, x10, :lo12:{filter}",
        "ldrb w9, [x10, x9]",
        "cbz w9, 2f",
        "lsr x9, x0, #{chunk_bits}",
        "mov x11, #{chunks}",
        "cmp x9, x11",
        "b.hs 2f",
        "adrp x10, {directory}",
        "ldr x10, [x10, :lo12:{directory}]",
        "ldr x10, [x10, x9, lsl #3]",
        "cbz x10, 2f",
        "ubfx x9, x0, #{granule_bits}, #{index_bits}",
        "lsr x11, x9, #{word_bits}",
        "ldr w11, [x10, x11, lsl #2]",
        "lsr w11, w11, w9",
        "tbnz w11, #0, 3f",
        "2:",
        "ldr x17, [x16, #{served}]",
        "br x17",
        "3:",
        "b {consider}",
        factor_low = const marks::FACTOR & 0xffff,
        factor_high = const marks::FACTOR >> 16,
        shift = const marks::SHIFT,
        filter = sym marks::FILTER,
        directory = sym marks::DIRECTORY,
        chunk_bits = const marks::CHUNK_BITS,
        chunks = const marks::CHUNKS,
        granule_bits = const marks::GRANULE_BITS,
        index_bits = const marks::CHUNK_BITS - marks::GRANULE_BITS,
        word_bits = const marks::WORD_BITS,
        consider = sym consider,
        served = const offset_of!(Slot, served),
    )
}

/// Passes a resize on, and records it if the old block or the new one is sampled. An entry point
/// jumps here with its slot in x16. Only the first two arguments, an address and a size, are used.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn resize() {
    core::arch::naked_asm!(
        "hint #34",
        "mov w9, #{factor_low}",
        "movk w9, #{factor_high}, lsl #16",
        "mul w9, w9, w0",
        "lsr w9, w9, #{shift}",
        "adrp x10, {filter}",
        "add x10, x10, :lo12:{filter}",
        "ldrb w9, [x10, x9]",
        "cbnz w9, 3f",
        "adrp x10, :gottprel:heapdrome_last",
        "ldr x10, [x10, :gottprel_lo12:heapdrome_last]",
        "mrs x9, tpidr_el0",
        "add x10, x10, x9",
        "cmp x1, #1",
        "cinc x12, x1, lo",
        "ldr x9, [x10, #{until}]",
        "subs x11, x9, x12",
        // If a point falls into the request, `before` counts the requested bytes.
        "b.lo 3f",
        "str x11, [x10, #{until}]",
        "ldr x17, [x16, #{served}]",
        "br x17",
        "3:",
        "b {consider}",
        factor_low = const marks::FACTOR & 0xffff,
        factor_high = const marks::FACTOR >> 16,
        shift = const marks::SHIFT,
        filter = sym marks::FILTER,
        until = const offset_of!(Thread, until),
        consider = sym consider,
        served = const offset_of!(Slot, served),
    )
}

/// Passes a call on that may have to be recorded. Its slot is in x16.
///
/// An allocator's `operator new` may pass the call on to malloc by a jump. The call to malloc then
/// returns to this function, and is not recorded a second time.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn consider() {
    core::arch::naked_asm!(
        ".cfi_startproc",
        ".cfi_personality 0x1b, {personality}",
        "hint #34",
        "adr x9, 3f",
        "cmp x9, x30",
        "b.eq 4f",
        "sub sp, sp, #{frame}",
        ".cfi_adjust_cfa_offset {frame}",
        "str x30, [sp, #{return_address}]",
        ".cfi_rel_offset x30, {return_address}",
        "stp x0, x1, [sp]",
        "stp x2, x16, [sp, #16]",
        "str x29, [sp, #{frame_pointer}]",
        "mov x0, sp",
        "bl {before}",
        "mov w9, w0",
        "ldp x0, x1, [sp]",
        "ldp x2, x16, [sp, #16]",
        "tbz w9, #0, 5f",
        "ldr x9, [x16, #{served}]",
        "blr x9",
        "3:",
        "mov x1, x0",
        "mov x0, sp",
        "bl {after}",
        ".cfi_remember_state",
        "ldr x30, [sp, #{return_address}]",
        ".cfi_restore x30",
        "add sp, sp, #{frame}",
        ".cfi_adjust_cfa_offset -{frame}",
        "ret",
        "5:",
        ".cfi_restore_state",
        "ldr x30, [sp, #{return_address}]",
        ".cfi_restore x30",
        "add sp, sp, #{frame}",
        ".cfi_adjust_cfa_offset -{frame}",
        "4:",
        "ldr x17, [x16, #{served}]",
        "br x17",
        ".cfi_endproc",
        frame = const FRAME,
        frame_pointer = const offset_of!(SampledCall, frame_pointer),
        return_address = const offset_of!(SampledCall, return_address),
        before = sym before,
        after = sym after,
        personality = sym personality,
        served = const offset_of!(Slot, served),
    )
}
