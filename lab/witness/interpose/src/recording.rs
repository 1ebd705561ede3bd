//! Writes recorded calls into a ring, in the third mode of the library.
//!
//! A free is stamped before the allocator is called. A call that returns a block is stamped after
//! it has returned. So the free by an earlier owner of an address has an earlier stamp than the
//! call that returns the address to the next owner. A processor may read its counter before the
//! preceding loads are done. A free therefore waits for these loads, so its stamp is never earlier
//! than that of the call that made its block. A call that makes a block does not wait and may be
//! stamped too early, which the collector repairs.

use core::sync::atomic::Ordering;

use crate::calls::{Call, Deed, asked, deed};
use crate::layout::FUNCTIONS;
use crate::recording_passages::{record_free, recording_of};
use crate::ring::{Event, code};
use crate::rings::{push, stamp};
use crate::slots::SLOTS;
use crate::system::{self, fenced_ticks, ticks};
use crate::timing::{self, TimedCall};

/// Function that records a call before it is passed on. The argument is the address of the block
/// that the call frees or resizes.
type Before = extern "C" fn(usize);

/// Function that records the effect of a call that has returned, and returns the call's result.
type After = extern "C" fn(&Call, usize) -> usize;

/// Function that records the effect of a timed call that has returned, and returns the call's
/// result.
type TimedAfter = extern "C" fn(&TimedCall, usize) -> usize;

/// Recorders of one function. They are compiled for that function, so they take few instructions.
struct Recorders {
    before: Option<Before>,
    after: Option<After>,
    timed_after: Option<TimedAfter>,
    large_after: Option<TimedAfter>,
}

impl Recorders {
    const fn of<const INDEX: usize>() -> Self {
        match deed(INDEX) {
            Deed::Makes(_) | Deed::Stores(_) => Self {
                before: None,
                after: Some(after::<INDEX>),
                timed_after: Some(timed_after::<INDEX>),
                large_after: Some(large_after::<INDEX>),
            },
            Deed::Frees => Self {
                before: Some(before::<INDEX>),
                after: None,
                timed_after: None,
                large_after: None,
            },
            Deed::Resizes(_) => Self {
                before: Some(before::<INDEX>),
                after: Some(after::<INDEX>),
                timed_after: Some(timed_after::<INDEX>),
                large_after: Some(large_after::<INDEX>),
            },
            Deed::Nothing => Self {
                before: None,
                after: None,
                timed_after: None,
                large_after: None,
            },
        }
    }
}

macro_rules! recorders {
    ($($index:literal)+) => { [$(Recorders::of::<$index>(),)+] };
}

static RECORDERS: [Recorders; FUNCTIONS.len()] = recorders!(
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33
);

/// Prepares the slot of a function for recording. Returns the function to which the entry point
/// passes calls; `None` if they are not recorded.
pub fn passage(index: usize) -> Option<usize> {
    let (recorders, slot) = (&RECORDERS[index], &SLOTS[index]);
    let before = recorders
        .before
        .map_or(0, |before| before as *const () as usize);
    let after = recorders
        .after
        .map_or(0, |after| after as *const () as usize);
    let timed_after = recorders
        .timed_after
        .map_or(0, |after| after as *const () as usize);
    let large_after = recorders
        .large_after
        .map_or(0, |after| after as *const () as usize);
    // Relaxed: the release in `Slot::enter` publishes these addresses.
    slot.before.store(before, Ordering::Relaxed);
    slot.after.store(after, Ordering::Relaxed);
    slot.timed_after.store(timed_after, Ordering::Relaxed);
    slot.large_after.store(large_after, Ordering::Relaxed);
    match deed(index) {
        Deed::Frees => Some(record_free as *const () as usize),
        Deed::Nothing => None,
        Deed::Makes(size) | Deed::Stores(size) | Deed::Resizes(size) => Some(recording_of(size)),
    }
}

/// Records a call that frees or resizes the block at `address`. Records no resize of a null
/// pointer, because it frees no block.
extern "C" fn before<const INDEX: usize>(address: usize) {
    if address != 0 || matches!(deed(INDEX), Deed::Frees) {
        push_freed(INDEX, address);
    }
}

/// Records that a block is about to be freed or resized.
#[inline(always)]
pub fn push_freed(index: usize, address: usize) {
    let stamp = stamp(fenced_ticks);
    push(event(code::FREED, index, address, 0, stamp));
}

/// Records the effect of a call that has returned `result`, and returns `result`.
extern "C" fn after<const INDEX: usize>(call: &Call, result: usize) -> usize {
    if let Some(returned) = returned(INDEX, call, result) {
        push_returned(INDEX, call, &returned);
    }
    result
}

/// Records the effect of a timed call that has returned `result`, and returns `result`.
extern "C" fn timed_after<const INDEX: usize>(call: &TimedCall, result: usize) -> usize {
    timing::end(call.began, || after::<INDEX>(&call.call, result))
}

/// Records the effect of a timed call for a large block that has returned `result`, and returns
/// `result`.
extern "C" fn large_after<const INDEX: usize>(call: &TimedCall, result: usize) -> usize {
    if let Deed::Makes(size) | Deed::Stores(size) | Deed::Resizes(size) = deed(INDEX) {
        let size = asked(size, &call.call.arguments);
        timing::end_large(call.began, size, || {
            let returned = returned(INDEX, &call.call, result);
            returned.map_or(0, |returned| {
                push_returned(INDEX, &call.call, &returned);
                returned.block
            })
        });
    }
    result
}

/// Result of a call that requests a block.
pub struct Returned {
    /// Time stamp of the call, taken after it returned.
    pub stamp: u64,
    /// The address of the block; 0 if there is none.
    pub block: usize,
    /// Number of requested bytes.
    pub size: u64,
}

impl Returned {
    /// Returns the result of a resize without its new block, so that only the free of the old block
    /// is recorded.
    pub fn freed_only(self) -> Self {
        let (block, size) = (0, 0);
        Self {
            block,
            size,
            ..self
        }
    }
}

/// Converts the `result` of a call into a [`Returned`]. Returns `None` if the call requests no
/// block.
#[inline(always)]
pub fn returned(index: usize, call: &Call, result: usize) -> Option<Returned> {
    let stamp = stamp(ticks);
    let (size, block) = match deed(index) {
        Deed::Makes(size) | Deed::Resizes(size) => (size, result),
        // The result is an int, so the upper half of the register is undefined.
        Deed::Stores(size) if result as u32 == 0 => {
            // SAFETY: the call succeeded, so it has stored the block's address at the address in
            // its first argument.
            (size, unsafe { *(call.arguments[0] as *const usize) })
        }
        Deed::Stores(size) => (size, 0),
        Deed::Frees | Deed::Nothing => return None,
    };
    let size = asked(size, &call.arguments);
    Some(Returned { stamp, block, size })
}

/// Records the result of a call that requests a block, preceded by the requested alignment, if any.
#[inline(always)]
pub fn push_returned(index: usize, call: &Call, returned: &Returned) {
    let &Returned { stamp, block, size } = returned;
    if let Some(alignment) = alignment(index, &call.arguments) {
        let (address, code) = (alignment as u64, code::ALIGNMENT);
        push(Event {
            stamp,
            size: 0,
            address,
            code,
        });
    }
    let code = if block == 0 { code::FAILED } else { code::MADE };
    push(event(code, index, block, size, stamp));
}

/// Returns the alignment that a call requests, if its function has one.
fn alignment(index: usize, arguments: &[usize; 3]) -> Option<usize> {
    match index {
        // memalign, aligned_alloc
        6 | 8 => Some(arguments[0]),
        // posix_memalign, and the aligned forms of operator new
        7 | 18..=21 => Some(arguments[1]),
        // valloc, pvalloc
        // SAFETY: `getauxval` accepts every kind. The kernel passes the size of a page to every
        // program.
        9 | 10 => Some(unsafe { system::getauxval(system::AT_PAGESZ) } as usize),
        _ => None,
    }
}

fn event(code: u8, index: usize, address: usize, size: u64, stamp: u64) -> Event {
    let (address, code) = (address as u64, code + index as u8);
    Event {
        stamp,
        size,
        address,
        code,
    }
}
