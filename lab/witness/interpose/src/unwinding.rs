//! Records calls that end by an exception.
//!
//! When out of memory, `operator new` throws `bad_alloc` through the frame of the passage that
//! called it. The unwinder then calls the frame's personality routine. The routine here records the
//! failed call, and lets the unwinder continue (Itanium C++ ABI: Exception Handling, 1.6).

use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering;

use crate::calls::{Call, Deed, deed};
use crate::slots;

/// Flag of the phase in which the unwinder removes frames, after it has found a handler.
const CLEANUP_PHASE: c_int = 2;
/// Result of a personality routine: the frame needs no cleanup, and the unwinder continues.
pub const CONTINUE_UNWIND: c_int = 8;

/// Function that returns the stack pointer that a frame had when it made its call. Both unwinders
/// in use, GCC's and LLVM's, return it as the canonical frame address.
type FrameAddress = unsafe extern "C" fn(*mut c_void) -> usize;

/// Function that records the result of a call.
type After = extern "C" fn(&Call, usize) -> usize;

/// Personality routine of passages that record through
/// [`Slot::after`](slots::Slot::after).
pub unsafe extern "C" fn personality(
    _version: c_int,
    actions: c_int,
    _class: u64,
    _exception: *mut c_void,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the unwinder passes the context of a passage's frame, at whose stack pointer a `Call`
    // lies.
    if let Some(call) = unsafe { failed_call(actions, context) } {
        // SAFETY: `call.slot` is the address of a static slot, plus `TIMED` in a timed call, or
        // plus twice that in a call for a large block. So `after` is that slot's `after`,
        // `timed_after` or `large_after`. A function that makes blocks has all three. The latter
        // two expect a `TimedCall`, which begins with its `Call`.
        unsafe {
            let after = (*call.slot).after.load(Ordering::Relaxed);
            core::mem::transmute::<usize, After>(after)(call, 0);
        }
    }
    CONTINUE_UNWIND
}

/// Returns the call of the passage frame that the unwinder removes, if the called function makes a
/// block. Returns `None` while the unwinder only searches for a handler.
///
/// # Safety
/// `context` belongs to the frame of a passage, at whose stack pointer a [`Call`] lies.
pub unsafe fn failed_call<'a>(actions: c_int, context: *mut c_void) -> Option<&'a Call> {
    if actions & CLEANUP_PHASE == 0 {
        return None;
    }
    let frame_address = frame_address()?;
    // SAFETY: `context` belongs to the frame of a passage, so a `Call` lies at its stack pointer.
    // The frame exists until the personality routine returns.
    let call = unsafe { &*(frame_address(context) as *const Call) };
    matches!(deed(slots::index(call.slot)), Deed::Makes(_)).then_some(call)
}

// A weak reference, because only programs with an unwinder define this function.
core::arch::global_asm!(".weak _Unwind_GetCFA");

fn frame_address() -> Option<FrameAddress> {
    let address: usize;
    // SAFETY: the instructions only read an entry of this library's global offset table.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        core::arch::asm!(
            "mov {address}, qword ptr [rip + _Unwind_GetCFA@GOTPCREL]",
            address = out(reg) address,
            options(nostack, pure, readonly),
        );
        #[cfg(target_arch = "aarch64")]
        core::arch::asm!(
            "adrp {address}, :got:_Unwind_GetCFA",
            "ldr {address}, [{address}, :got_lo12:_Unwind_GetCFA]",
            address = out(reg) address,
            options(nostack, pure, readonly),
        );
    }
    // SAFETY: the loader has stored the function's address in that entry, or zero.
    unsafe { core::mem::transmute::<usize, Option<FrameAddress>>(address) }
}
