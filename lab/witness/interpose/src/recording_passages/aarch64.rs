//! Passages of recorded calls on AArch64.

use core::mem::offset_of;

use crate::large;
use crate::slots::{Slot, TIMED};
use crate::thread::Thread;
use crate::timing::{self, TimedCall};
use crate::unwinding::personality;

// Reads the processor's counter into x9, after all earlier instructions have completed.
macro_rules! read_counter {
    () => {
        "isb\nmrs x9, cntvct_el0"
    };
}

// Counts a call towards the next timed call. Sets the condition "lower" if the countdown has ended,
// so that `choose` or `is_timed` decides whether this call is timed. Clobbers x9 and x10.
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

// Defines a passage that loads the requested bytes into x12 and jumps to `record`. May clobber x13.
macro_rules! requesting {
    ($name:ident, $($into_x12:literal)+) => {
        #[unsafe(naked)]
        pub(super) unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                "hint #34",
                $($into_x12,)+
                "b {record}",
                record = sym record,
            )
        }
    };
}
requesting!(first, "mov x12, x0");
requesting!(second, "mov x12, x1");
requesting!(third, "mov x12, x2");

// Use the largest number if the product exceeds 64 bits.
requesting!(
    first_times_second,
    "umulh x13, x0, x1"
    "mul x12, x0, x1"
    "cmp x13, #0"
    "csinv x12, x12, xzr, eq"
);
requesting!(
    second_times_third,
    "umulh x13, x1, x2"
    "mul x12, x1, x2"
    "cmp x13, #0"
    "csinv x12, x12, xzr, eq"
);

/// Passes a call on and records its effect. Its slot is in x16, and the requested bytes are in x12.
///
/// An allocator's `operator new` may pass the call on to malloc by a jump. The call to malloc then
/// returns to this function, and is not recorded a second time.
#[unsafe(naked)]
#[allow(clippy::too_many_lines, reason = "a line holds one instruction")]
unsafe extern "C" fn record() {
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
        "str x12, [sp, #{began}]",
        "blr x9",
        "ldp x0, x1, [sp]",
        "ldp x2, x16, [sp, #16]",
        "ldr x12, [sp, #{began}]",
        "2:",
        "lsr x9, x12, #{large_bits}",
        "cbnz x9, 5f",
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
        "mov x0, sp",
        "mov x1, x12",
        "bl {choose}",
        "mov x9, x0",
        "ldp x0, x1, [sp]",
        "ldp x2, x16, [sp, #16]",
        "add x10, x16, x9",
        "str x10, [sp, #24]",
        "cmp x9, #{timed}",
        "b.ne 6b",
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
        large_bits = const large::LARGE.trailing_zeros(),
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
        "hint #34",
        "sub sp, sp, #48",
        ".cfi_adjust_cfa_offset 48",
        "str x30, [sp, #32]",
        ".cfi_rel_offset x30, 32",
        "stp x0, x1, [sp]",
        "stp x2, x16, [sp, #16]",
        "mov w9, #{factor_low}",
        "movk w9, #{factor_high}, lsl #16",
        "mul w9, w9, w0",
        "lsr w9, w9, #{shift}",
        "adrp x10, {places}",
        "add x10, x10, :lo12:{places}",
        "ldr x10, [x10, x9, lsl #3]",
        "cmp x10, x0",
        "b.eq 5f",
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
        "5:",
        ".cfi_adjust_cfa_offset 48",
        ".cfi_rel_offset x30, 32",
        "ldr x9, [x16, #{before}]",
        "blr x9",
        "sub sp, sp, #16",
        ".cfi_adjust_cfa_offset 16",
        "mov x0, sp",
        "ldr x1, [sp, #16]",
        "bl {begin_large_free}",
        "adrp x9, :gottprel:heapdrome_last",
        "ldr x9, [x9, :gottprel_lo12:heapdrome_last]",
        "mrs x10, tpidr_el0",
        "add x9, x9, x10",
        "mov x10, sp",
        "adr x11, 6f",
        "ldp x0, x1, [sp, #16]",
        "ldp x2, x16, [sp, #32]",
        "stp x10, x11, [x9]",
        "str x16, [x9, #16]",
        "ldr x9, [x16, #{next}]",
        "blr x9",
        "6:",
        "mov x0, sp",
        "bl {end_large_free}",
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
        factor_low = const large::FACTOR & 0xffff,
        factor_high = const large::FACTOR >> 16,
        shift = const large::SHIFT,
        places = sym large::PLACES_OF_LARGE,
        begin_large_free = sym timing::begin_large_free,
        end_large_free = sym timing::end_large_free,
    )
}
