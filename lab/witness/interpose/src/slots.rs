//! Slots: the functions to which each entry point passes its calls, and the counter of these calls.

use core::mem::offset_of;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use crate::layout::FUNCTIONS;

unsafe extern "C" {
    /// Code to which an entry point jumps until its slot is filled: it finds the function that
    /// serves the entry point, and fills the slot. [`crate::entry`] defines it and uses this
    /// module. To avoid a cycle of modules, it is only declared here, and the linker resolves it.
    #[link_name = "heapdrome_unresolved"]
    fn unresolved();
}

/// Targets, callers and counter of one entry point. Its assembly depends on the order of the
/// fields. The fields before `after` share a cache line.
#[repr(C, align(64))]
pub struct Slot {
    /// Function that receives calls that are not counted; 0 until the slot is filled.
    pub next: AtomicUsize,
    /// Start address of the object that serves the calls; `span` is the object's length. Calls from
    /// this range are the object's own and are not counted. If glibc serves the calls, the range is
    /// empty.
    pub low: AtomicUsize,
    pub span: AtomicUsize,
    /// Counter of the calls: the first word of a [`Function`](crate::layout::Function); 0 if calls
    /// are not counted.
    pub counter: AtomicUsize,
    /// Function that receives counted or recorded calls: the one in `next`, or a passage that
    /// follows or records them.
    pub counted_next: AtomicUsize,
    /// Code to which the entry point jumps: it finds the function that serves the calls, or tests
    /// the caller, or is the passage of a function whose callers are not tested.
    pub first: AtomicPtr<()>,
    /// The function that serves the calls.
    pub served: AtomicUsize,
    /// Function that records a call before it is passed on; 0 if there is none.
    pub before: AtomicUsize,
    /// Function that records a call after it has returned; 0 if there is none.
    pub after: AtomicUsize,
    /// Function that records a timed call after it has returned; 0 if there is none. The frame of a
    /// timed call contains the address of its slot plus [`TIMED`]. From that address, the offset of
    /// `after` leads to this field.
    pub timed_after: AtomicUsize,
    /// Function that records a call for a large block after it has returned; 0 if there is none.
    /// The frame of such a call contains the address of its slot plus twice [`TIMED`].
    pub large_after: AtomicUsize,
}

impl Slot {
    /// Returns the address of the function that serves the calls.
    pub fn target(&self) -> usize {
        self.served.load(Ordering::Relaxed)
    }

    /// Sets the code to which the entry point jumps. Publishes all other fields.
    pub fn enter(&self, first: usize) {
        self.first.store(first as *mut (), Ordering::Release);
    }
}

/// Distance of `timed_after` from `after` in bytes.
pub const TIMED: usize = offset_of!(Slot, timed_after) - offset_of!(Slot, after);

const _: () = assert!(offset_of!(Slot, large_after) == offset_of!(Slot, after) + 2 * TIMED);

/// Distance of two slots in bytes.
pub const SLOT_BYTES: usize = size_of::<Slot>();

/// Returns the index in [`FUNCTIONS`] of the function with this slot.
pub fn index(slot: *const Slot) -> usize {
    (slot as usize - (&raw const SLOTS) as usize) / SLOT_BYTES
}

/// One slot for each function.
pub static SLOTS: [Slot; FUNCTIONS.len()] = [const {
    Slot {
        next: AtomicUsize::new(0),
        low: AtomicUsize::new(0),
        span: AtomicUsize::new(0),
        counter: AtomicUsize::new(0),
        counted_next: AtomicUsize::new(0),
        first: AtomicPtr::new(unresolved as *const () as *mut ()),
        served: AtomicUsize::new(0),
        before: AtomicUsize::new(0),
        after: AtomicUsize::new(0),
        timed_after: AtomicUsize::new(0),
        large_after: AtomicUsize::new(0),
    }
}; FUNCTIONS.len()];

/// Passes a call on to the function that serves it. The slot is in r11.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
pub unsafe extern "C" fn pass_on() {
    core::arch::naked_asm!(
        "notrack jmp [r11 + {served}]",
        served = const offset_of!(Slot, served),
    )
}

/// Passes a call on to the function that serves it. The slot is in x16.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
pub unsafe extern "C" fn pass_on() {
    core::arch::naked_asm!(
        "hint #34",
        "ldr x17, [x16, #{served}]",
        "br x17",
        served = const offset_of!(Slot, served),
    )
}
