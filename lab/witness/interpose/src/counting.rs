//! Code to which an entry point jumps if its callers must be tested. It tests the caller, and
//! counts the call unless calls are recorded.
//!
//! Each step is a jump, not a call: the next function gets the caller's registers and stack. So
//! `operator new` may throw through an entry point, and errno and results stay unchanged.
//!
//! An object may also pass a call on to another of its functions by a jump, as `operator new` does
//! to malloc. Each thread remembers the stack pointer, return address and function of its latest
//! counted entry. The second entry point sees the same stack pointer and return address, but
//! another function of the same object, and does not count the call. A loop that repeats a call
//! from one place also repeats both values, but enters the same function, and is counted.

use core::mem::offset_of;

use crate::calls::{Deed, Size, deed};
use crate::layout::Function;
use crate::record::Mode;
use crate::slots::Slot;

// The assembly below uses these offsets as numbers.
const _: () = assert!(offset_of!(Function, calls) == 0);
const _: () = assert!(offset_of!(Function, bytes) == 8);
const _: () = assert!(offset_of!(Slot, next) == 0 && offset_of!(Slot, low) == 8);
const _: () = assert!(offset_of!(Slot, span) == 16 && offset_of!(Slot, counter) == 24);
const _: () = assert!(offset_of!(Slot, counted_next) == 32);

// Adds the requested bytes, which `$into_r8` loads, to the counter at `[r10 + 8]`. If they are 2^47
// or more, jumps to label 3 instead. Clobbers r8 and rcx.
#[cfg(target_arch = "x86_64")]
macro_rules! add_bytes {
    ($($into_r8:literal)+) => {
        concat!(
            $($into_r8, "\n",)+
            "mov rcx, r8\n",
            "shr rcx, 47\n",
            "jne 3f\n",
            "lock add qword ptr [r10 + 8], r8",
        )
    };
}

// Adds to the counter the requested bytes, which the macro's arguments describe. For calloc, they
// are `first times second`.
#[cfg(target_arch = "x86_64")]
macro_rules! requested {
    (nothing) => { "" };
    (first) => { add_bytes!("mov r8, rdi") };
    (second) => { add_bytes!("mov r8, rsi") };
    (third) => { add_bytes!("mov r8, rdx") };
    (first times second) => { add_bytes!("mov r8, rdi" "imul r8, rsi" "jo 3f") };
    (second times third) => { add_bytes!("mov r8, rsi" "imul r8, rdx" "jo 3f") };
}

// Defines code that tests the caller of an entry point, and counts the call unless the serving
// object made it or passed it on. The slot is in r11.
#[cfg(target_arch = "x86_64")]
macro_rules! testing {
    ($function:ident, $($bytes:ident)+) => {
        #[unsafe(naked)]
        #[allow(clippy::too_many_lines, reason = "a line holds one instruction")]
        unsafe extern "C" fn $function() {
            core::arch::naked_asm!(
                "mov rax, [r11]",
                "mov r10, [rsp]",
                "sub r10, [r11 + 8]",
                "cmp r10, [r11 + 16]",
                "jb 3f",
                // No function here has more than three arguments, so rcx and r8 are free.
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
                "mov rax, [r11 + 32]",
                "test r10, r10",
                "je 3f",
                "lock inc qword ptr [r10]",
                requested!($($bytes)+),
                "3:",
                "notrack jmp rax",
            )
        }
    };
}

// Adds the requested bytes, which `$into_x12` loads, to the counter at `[x10 + 8]`. If they are
// 2^47 or more, jumps to label 3 instead. Clobbers x9 to x13.
#[cfg(target_arch = "aarch64")]
macro_rules! add_bytes {
    ($($into_x12:literal)+) => {
        concat!(
            $($into_x12, "\n",)+
            "lsr x13, x12, #47\n",
            "cbnz x13, 3f\n",
            "add x10, x10, #8\n",
            "7:\n",
            "ldxr x9, [x10]\n",
            "add x9, x9, x12\n",
            "stxr w11, x9, [x10]\n",
            "cbnz w11, 7b",
        )
    };
}

// Adds to the counter the requested bytes, which the macro's arguments describe. For calloc, they
// are `first times second`.
#[cfg(target_arch = "aarch64")]
macro_rules! requested {
    (nothing) => { "" };
    (first) => { add_bytes!("mov x12, x0") };
    (second) => { add_bytes!("mov x12, x1") };
    (third) => { add_bytes!("mov x12, x2") };
    (first times second) => { add_bytes!("umulh x12, x0, x1" "cbnz x12, 3f" "mul x12, x0, x1") };
    (second times third) => { add_bytes!("umulh x12, x1, x2" "cbnz x12, 3f" "mul x12, x1, x2") };
}

// Defines code that tests the caller of an entry point, and counts the call unless the serving
// object made it or passed it on. The slot is in x16.
#[cfg(target_arch = "aarch64")]
macro_rules! testing {
    ($function:ident, $($bytes:ident)+) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $function() {
            core::arch::naked_asm!(
                "hint #34",
                "ldr x17, [x16]",
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
                "ldp x10, x17, [x16, #24]",
                "cbz x10, 3f",
                "6:",
                "ldxr x9, [x10]",
                "add x9, x9, #1",
                "stxr w11, x9, [x10]",
                "cbnz w11, 6b",
                requested!($($bytes)+),
                "3:",
                "br x17",
            )
        }
    };
}

/// Tests the caller of an entry point whose calls are recorded and not counted. The slot is in r11.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn testing_recorded() {
    core::arch::naked_asm!(
        "mov rcx, [rsp]",
        "mov r10, rcx",
        "sub r10, [r11 + 8]",
        "cmp r10, [r11 + 16]",
        "jb 3f",
        "mov r10, qword ptr [rip + heapdrome_last@GOTTPOFF]",
        "cmp rsp, fs:[r10]",
        "je 4f",
        "5:",
        "mov fs:[r10], rsp",
        "mov fs:[r10 + 8], rcx",
        "mov fs:[r10 + 16], r11",
        "notrack jmp [r11 + 32]",
        "4:",
        "cmp rcx, fs:[r10 + 8]",
        "jne 5b",
        "mov r8, fs:[r10 + 16]",
        "cmp r8, r11",
        "je 5b",
        "mov r8, [r8 + 8]",
        "cmp r8, [r11 + 8]",
        "jne 5b",
        "3:",
        "notrack jmp [r11]",
    )
}

/// Tests the caller of an entry point whose calls are recorded and not counted. The slot is in x16.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn testing_recorded() {
    core::arch::naked_asm!(
        "hint #34",
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
        "b.eq 4f",
        "5:",
        "stp x11, x30, [x10]",
        "str x16, [x10, #16]",
        "ldr x17, [x16, #32]",
        "br x17",
        "4:",
        "cmp x30, x13",
        "b.ne 5b",
        "ldr x12, [x10, #16]",
        "cmp x12, x16",
        "b.eq 5b",
        "ldr x12, [x12, #8]",
        "ldr x13, [x16, #8]",
        "cmp x12, x13",
        "b.ne 5b",
        "3:",
        "ldr x17, [x16]",
        "br x17",
    )
}

testing!(testing_none, nothing);
testing!(testing_first, first);
testing!(testing_second, second);
testing!(testing_third, third);
testing!(testing_first_times_second, first times second);
testing!(testing_second_times_third, second times third);

/// Returns the code that tests the callers of the function at an index of
/// [`FUNCTIONS`](crate::layout::FUNCTIONS).
pub fn testing(index: usize, mode: Mode) -> usize {
    let code: unsafe extern "C" fn() = match deed(index) {
        _ if mode == Mode::Recording => testing_recorded,
        Deed::Frees | Deed::Nothing => testing_none,
        Deed::Makes(size) | Deed::Stores(size) | Deed::Resizes(size) => match size {
            Size::First => testing_first,
            Size::Second => testing_second,
            Size::Third => testing_third,
            Size::FirstTimesSecond => testing_first_times_second,
            Size::SecondTimesThird => testing_second_times_third,
        },
    };
    code as *const () as usize
}
