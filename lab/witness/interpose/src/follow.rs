//! Follows blocks, in the second mode of the library: every counted call runs through [`follow`],
//! except calls to the C++ runtime, which calls malloc.
//!
//! Counts sizes, live bytes and blocks that another thread frees, and times each call. [`follow`]
//! adds a frame to the stack. Its assembly describes the frame to the unwinder, so exceptions of
//! `operator new` can pass it. errno keeps the value that the called function sets.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::calls::{Call, Deed, asked, deed};
use crate::clock;
use crate::layout::SIZES;
use crate::record;
use crate::shadow::{self, Block};
use crate::slots;
use crate::system;
use crate::thread::{Thread, thread};

/// A call on its way to the allocator, as [`follow`] lays it out on the stack.
#[repr(C)]
struct FollowedCall {
    call: Call,
    /// Size of the block that the call frees, plus one; 0 if it frees none.
    old_size: u64,
    old_thread: u64,
    /// The processor's counter before the call; 0 if the thread may not read it.
    began: u64,
}

const _: () = assert!(size_of::<FollowedCall>() == 56);

/// Passes a call on to the allocator and counts the call's effect. An entry point jumps here with
/// its slot in r11.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
pub unsafe extern "C" fn follow() {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "endbr64",
        "sub rsp, 56",
        ".cfi_adjust_cfa_offset 56",
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
        "add rsp, 56",
        ".cfi_adjust_cfa_offset -56",
        "ret",
        ".cfi_endproc",
        before = sym before,
        after = sym after,
    )
}

/// Passes a call on to the allocator and counts the call's effect. An entry point jumps here with
/// its slot in x16.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
pub unsafe extern "C" fn follow() {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "hint #34",
        "sub sp, sp, #80",
        ".cfi_adjust_cfa_offset 80",
        "str x30, [sp, #64]",
        ".cfi_rel_offset x30, 64",
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
        "ldr x30, [sp, #64]",
        ".cfi_restore x30",
        "add sp, sp, #80",
        ".cfi_adjust_cfa_offset -80",
        "ret",
        ".cfi_endproc",
        before = sym before,
        after = sym after,
    )
}

/// Prepares a call: if it frees or resizes a block, removes that block from the live blocks.
/// Returns the address of the function to call.
extern "C" fn before(call: &mut FollowedCall) -> usize {
    let old = match deed(slots::index(call.call.slot)) {
        Deed::Frees | Deed::Resizes(_) => forget(call.call.arguments[0]),
        _ => None,
    };
    call.old_size = old.map_or(0, |block| block.size + 1);
    call.old_thread = old.map_or(0, |block| u64::from(block.thread));
    // SAFETY: `follow` has stored the address of the entry point's slot in `call.slot`.
    let next = unsafe { (*call.call.slot).target() };
    call.began = now();
    next
}

/// Counts the effect of a call that has returned `result`, and returns `result`.
extern "C" fn after(call: &FollowedCall, result: usize) -> usize {
    note_time(call.began);
    match deed(slots::index(call.call.slot)) {
        Deed::Makes(size) if result != 0 => note(result, asked(size, &call.call.arguments)),
        // The result is an int, so the upper half of the register is undefined.
        Deed::Stores(size) if result as u32 == 0 => {
            // SAFETY: the call succeeded, so it has stored the block's address at the address in
            // its first argument.
            let block = unsafe { *(call.call.arguments[0] as *const usize) };
            note(block, asked(size, &call.call.arguments));
        }
        Deed::Resizes(size) => resized(call, result, asked(size, &call.call.arguments)),
        _ => {}
    }
    result
}

/// Counts a new block by its size, and as live.
fn note(address: usize, size: u64) {
    let length = (u64::BITS - size.leading_zeros()) as usize;
    let bin = &record::followed().sizes[length.min(SIZES - 1)];
    bin.blocks.fetch_add(1, Ordering::Relaxed);
    bin.bytes.fetch_add(size, Ordering::Relaxed);
    let thread = number(thread()) as u8;
    live(address, Block { size, thread });
}

/// Counts a block as live. If another thread forks after the block is in the table and before its
/// size is in the sum of live bytes, the child's sum lacks the block. The sum is signed, because it
/// may become negative when the child frees that block.
fn live(address: usize, block: Block) {
    let followed = record::followed();
    let Some(more) = shadow::put(address, block) else {
        return;
    };
    let now = followed.live.fetch_add(more, Ordering::Relaxed) + more;
    if now > followed.peak.load(Ordering::Relaxed) {
        followed.peak.fetch_max(now, Ordering::Relaxed);
    }
}

/// Removes the block at `address` from the live blocks, and returns it; `None` if it was not
/// followed. Runs before the call that frees the block, because another thread may get the address
/// as soon as the block is freed.
fn forget(address: usize) -> Option<Block> {
    let block = shadow::take(address)?;
    let followed = record::followed();
    followed
        .live
        .fetch_sub(block.size as i64, Ordering::Relaxed);
    followed.frees.fetch_add(1, Ordering::Relaxed);
    if is_of_another(block) {
        followed.freed_by_others.fetch_add(1, Ordering::Relaxed);
    }
    Some(block)
}

/// Returns whether a thread other than the calling one requested a block. Compares only the lowest
/// 8 bits of the threads' numbers, so some threads count as the same one.
fn is_of_another(block: Block) -> bool {
    block.thread != number(thread()) as u8
}

/// Counts the block that a resize returned. If the resize failed, counts the old block as live
/// again.
fn resized(call: &FollowedCall, result: usize, size: u64) {
    if result != 0 {
        note(result, size);
    } else if call.old_size != 0 && size != 0 {
        let block = Block {
            size: call.old_size - 1,
            thread: call.old_thread as u8,
        };
        live(call.call.arguments[0], block);
        let followed = record::followed();
        followed.frees.fetch_sub(1, Ordering::Relaxed);
        if is_of_another(block) {
            followed.freed_by_others.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Returns the number of the thread, which is unique in the process and at least 1.
fn number(thread: &Thread) -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    if thread.number.get() == 0 {
        thread.number.set(LAST.fetch_add(1, Ordering::Relaxed) + 1);
    }
    thread.number.get()
}

/// Returns the processor's counter; 0 if the thread may not read it.
fn now() -> u64 {
    if clock::may_read() {
        system::fenced_ticks()
    } else {
        0
    }
}

/// Counts the time of a call, unless it was interrupted or the thread may not read the counter.
fn note_time(began: u64) {
    let ticks = now().wrapping_sub(began);
    if began != 0 && ticks < system::interrupted() {
        let followed = record::followed();
        followed.timed.fetch_add(1, Ordering::Relaxed);
        followed.ticks.fetch_add(ticks, Ordering::Relaxed);
    }
}
