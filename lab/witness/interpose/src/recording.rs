//! The third mode of the library: every call is written into a ring.
//!
//! A free is stamped before the allocator is called, and a call that returns a block after it has
//! returned: of two owners of an address, the later one has the later stamp.

use crate::calls::{Call, Deed, asked, deed};
use crate::ring::{Event, code};
use crate::rings::push;
use crate::slots::{self, Slot};
use crate::system::ticks;

/// Passes a call on and records its effect. An entry point jumps here with its slot in r11.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
pub unsafe extern "C" fn record() {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "endbr64",
        "sub rsp, 40",
        ".cfi_adjust_cfa_offset 40",
        "mov [rsp], rdi",
        "mov [rsp + 8], rsi",
        "mov [rsp + 16], rdx",
        "mov [rsp + 24], r11",
        "mov rdi, rsp",
        "call {before}",
        "mov rdi, [rsp]",
        "mov rsi, [rsp + 8]",
        "mov rdx, [rsp + 16]",
        "call rax",
        "mov rsi, rax",
        "mov rdi, rsp",
        "call {after}",
        "add rsp, 40",
        ".cfi_adjust_cfa_offset -40",
        "ret",
        ".cfi_endproc",
        before = sym before,
        after = sym after,
    )
}

/// Records that a block is freed and goes on to the allocator, without coming back.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
pub unsafe extern "C" fn record_free() {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "endbr64",
        "sub rsp, 24",
        ".cfi_adjust_cfa_offset 24",
        "mov [rsp], rdi",
        "mov [rsp + 8], rsi",
        "mov [rsp + 16], rdx",
        "mov rsi, r11",
        "call {freed}",
        "mov rdi, [rsp]",
        "mov rsi, [rsp + 8]",
        "mov rdx, [rsp + 16]",
        "add rsp, 24",
        ".cfi_adjust_cfa_offset -24",
        "jmp rax",
        ".cfi_endproc",
        freed = sym freed,
    )
}

/// Passes a call on and records its effect. An entry point jumps here with its slot in x16.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
pub unsafe extern "C" fn record() {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "hint #34",
        "sub sp, sp, #48",
        ".cfi_adjust_cfa_offset 48",
        "str x30, [sp, #32]",
        ".cfi_rel_offset x30, 32",
        "stp x0, x1, [sp]",
        "stp x2, x16, [sp, #16]",
        "mov x0, sp",
        "bl {before}",
        "mov x9, x0",
        "ldp x0, x1, [sp]",
        "ldr x2, [sp, #16]",
        "blr x9",
        "mov x1, x0",
        "mov x0, sp",
        "bl {after}",
        "ldr x30, [sp, #32]",
        ".cfi_restore x30",
        "add sp, sp, #48",
        ".cfi_adjust_cfa_offset -48",
        "ret",
        ".cfi_endproc",
        before = sym before,
        after = sym after,
    )
}

/// Records that a block is freed and goes on to the allocator, without coming back.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
pub unsafe extern "C" fn record_free() {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "hint #34",
        "sub sp, sp, #32",
        ".cfi_adjust_cfa_offset 32",
        "stp x0, x1, [sp]",
        "stp x2, x30, [sp, #16]",
        ".cfi_rel_offset x30, 24",
        "mov x1, x16",
        "bl {freed}",
        "mov x16, x0",
        "ldp x0, x1, [sp]",
        "ldp x2, x30, [sp, #16]",
        ".cfi_restore x30",
        "add sp, sp, #32",
        ".cfi_adjust_cfa_offset -32",
        "br x16",
        ".cfi_endproc",
        freed = sym freed,
    )
}

/// Where the calls of a function go that are recorded.
pub fn passage(index: usize) -> usize {
    match deed(index) {
        Deed::Frees => record_free as *const () as usize,
        _ => record as *const () as usize,
    }
}

/// Whether the calls of a function are recorded.
pub fn is_recorded(index: usize) -> bool {
    !matches!(deed(index), Deed::Nothing)
}

/// Records a free and returns the function to call.
extern "C" fn freed(address: usize, slot: *const Slot) -> usize {
    event(code::FREED, slots::index(slot), address, 0);
    // SAFETY: the entry point has put the address of its slot there.
    unsafe { (*slot).target() }
}

/// Records that a block is about to be resized, and returns the function to call.
extern "C" fn before(call: &Call) -> usize {
    let index = slots::index(call.slot);
    if let Deed::Resizes(_) = deed(index)
        && call.arguments[0] != 0
    {
        event(code::FREED, index, call.arguments[0], 0);
    }
    // SAFETY: as above.
    unsafe { (*call.slot).target() }
}

/// Records the effect of a call that has returned `result`, and returns that.
extern "C" fn after(call: &Call, result: usize) -> usize {
    let index = slots::index(call.slot);
    let (size, block) = match deed(index) {
        Deed::Makes(size) | Deed::Resizes(size) => (size, result),
        // An int of which the upper half of the register is not defined.
        Deed::Stores(size) if result as u32 == 0 => {
            // SAFETY: the function has stored an address there, since it succeeded.
            (size, unsafe { *(call.arguments[0] as *const usize) })
        }
        Deed::Stores(size) => (size, 0),
        Deed::Frees | Deed::Nothing => return result,
    };
    if let Some(alignment) = alignment(index, &call.arguments) {
        push(Event {
            stamp: 0,
            size: 0,
            address: alignment as u64,
            code: code::ALIGNMENT,
        });
    }
    let code = if block == 0 { code::FAILED } else { code::MADE };
    event(code, index, block, asked(size, &call.arguments));
    result
}

/// The alignment that a call asks for.
fn alignment(index: usize, arguments: &[usize; 3]) -> Option<usize> {
    match index {
        // memalign, aligned_alloc
        6 | 8 => Some(arguments[0]),
        // posix_memalign, and the aligned forms of operator new
        7 | 18..=21 => Some(arguments[1]),
        // valloc, pvalloc
        9 | 10 => Some(PAGE),
        _ => None,
    }
}

/// Bytes to which valloc and pvalloc align.
const PAGE: usize = 4096;

fn event(code: u8, index: usize, address: usize, size: u64) {
    push(Event {
        stamp: ticks(),
        size,
        address: address as u64,
        code: code + index as u8,
    });
}
