//! Chooses and records calls if a recording samples blocks or takes stacks, in the third mode of
//! the library. [`crate::passages`] passes calls to this module.

use core::ffi::{c_int, c_void};

use crate::calls::{Call, Deed, asked, deed};
use crate::control;
use crate::large::LARGE;
use crate::marks;
use crate::recording::{Returned, push_freed, push_returned, returned};
use crate::ring::{Event, code};
use crate::rings;
use crate::sample::{self, Points};
use crate::slots;
use crate::stack::{self, Registers};
use crate::system::fenced_ticks;
use crate::timing::{self, LargeClock};
use crate::unwinding::{CONTINUE_UNWIND, failed_call};

/// A call that may be recorded, as the passages lay it out on the stack.
#[repr(C)]
pub struct SampledCall {
    call: Call,
    /// Whether the call frees a recorded block.
    frees: bool,
    /// Sample points within the bytes that the call requests.
    points: Points,
    /// The caller's frame pointer.
    pub frame_pointer: usize,
    /// Time before the call, if it is timed: see [`timing::TimedCall::began`]; otherwise 0.
    began: u64,
    /// Address to which the call returns. The caller's stack begins above this word.
    pub return_address: usize,
}

const _: () = assert!(size_of::<SampledCall>() == 64);

/// Decides whether a call is recorded. If the call frees a recorded block, records that free.
/// Returns whether the call's return must be recorded as well.
pub extern "C" fn before(call: &mut SampledCall) -> bool {
    let index = slots::index(call.call.slot);
    let address = call.call.arguments[0];
    let (samples, asked) = (marks::is_on(), |size| asked(size, &call.call.arguments));
    let is_recorded = |address| {
        if samples {
            marks::take(address)
        } else {
            address != 0
        }
    };
    (call.frees, call.points) = match deed(index) {
        // The passage of these functions has already counted the requested bytes down.
        Deed::Makes(size) | Deed::Stores(size) if samples => (false, sample::pass(asked(size))),
        Deed::Makes(size) | Deed::Stores(size) => (false, sample::count(asked(size))),
        Deed::Resizes(size) => (is_recorded(address), sample::count(asked(size))),
        Deed::Frees => (is_recorded(address), Points::default()),
        Deed::Nothing => (false, Points::default()),
    };
    if call.frees {
        push_freed(index, address);
    }
    // When blocks are sampled, few calls pass here, so none of them is timed.
    let is_timed = !samples && timing::count();
    let large = LargeClock::for_size(requested(call)).filter(|_| !samples);
    call.began = match large {
        Some(clock) => clock.begin_if_allowed(),
        None if is_timed => fenced_ticks(),
        None => 0,
    };
    call.points.any || (call.frees && matches!(deed(index), Deed::Resizes(_)))
}

/// Records the effect of a call that has returned `result`, and returns `result`.
pub extern "C" fn after(call: &SampledCall, result: usize) -> usize {
    match (call.began, requested(call)) {
        (0, _) => _ = record(call, result),
        (began, size) if size >= LARGE => timing::end_large(began, size, || record(call, result)),
        (began, _) => timing::end(began, || _ = record(call, result)),
    }
    result
}

/// Returns the number of bytes that a call requests.
fn requested(call: &SampledCall) -> u64 {
    match deed(slots::index(call.call.slot)) {
        Deed::Makes(size) | Deed::Stores(size) | Deed::Resizes(size) => {
            asked(size, &call.call.arguments)
        }
        Deed::Frees | Deed::Nothing => 0,
    }
}

/// Records a call that has returned `result`. Returns the address of the block that it made; 0 if
/// it made none.
fn record(call: &SampledCall, result: usize) -> usize {
    let index = slots::index(call.call.slot);
    let recorded = returned(index, &call.call, result).and_then(|returned| match returned.block {
        0 => without_block(call, returned),
        block if call.points.any && mark(block) => Some(returned),
        _ => {
            if call.points.any {
                control::left_out();
            }
            // The new block is not recorded, so the call only frees the old one.
            call.frees.then(|| returned.freed_only())
        }
    });
    recorded.map_or(0, |returned| {
        if call.points.stack && (returned.block != 0 || returned.size != 0) {
            push_stack(call, &returned);
        }
        push_returned(index, &call.call, &returned);
        returned.block
    })
}

/// Marks a recorded block, so that its free is recorded. Returns false if the block cannot be
/// marked. If every block is recorded, no mark is needed.
fn mark(block: usize) -> bool {
    !marks::is_on() || marks::set(block)
}

/// Takes the caller's stack, and records that the call has a stack.
fn push_stack(call: &SampledCall, returned: &Returned) {
    let taken = stack::take(Registers {
        return_address: call.return_address,
        stack_pointer: (&raw const *call) as usize + size_of::<SampledCall>(),
        frame_pointer: call.frame_pointer,
    });
    if let Some(place) = taken {
        rings::push(Event {
            stamp: returned.stamp,
            size: place,
            address: returned.block as u64,
            code: code::STACK,
        });
    }
}

/// Personality routine of [`consider`](crate::passages): records a call that ends by an
/// exception.
pub unsafe extern "C" fn personality(
    _version: c_int,
    actions: c_int,
    _class: u64,
    _exception: *mut c_void,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the unwinder passes the context of a frame of `consider`. A `SampledCall`, which
    // begins with a `Call`, lies at its stack pointer.
    unsafe {
        if let Some(call) = failed_call(actions, context) {
            after(&*(&raw const *call).cast::<SampledCall>(), 0);
        }
    }
    CONTINUE_UNWIND
}

/// Returns the result to record for a call that returned no block; `None` if nothing is recorded.
fn without_block(call: &SampledCall, returned: Returned) -> Option<Returned> {
    let old = call.call.arguments[0];
    let is_resize = matches!(deed(slots::index(call.call.slot)), Deed::Resizes(_));
    if is_resize && returned.size == 0 && old != 0 {
        // A resize to 0 bytes has freed the old block.
        return call.frees.then_some(returned);
    }
    if call.frees {
        // The resize failed, so the old block is still live.
        mark(old);
    }
    Some(returned)
}
