//! The word of the collector: how it records, and whether it still does.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::folder;
use crate::ring::{CONTROL, Control};

static SHARED: AtomicPtr<Control> = AtomicPtr::new(null_mut());

/// Maps the file that the collector has made; `None` if there is none.
pub fn begin() -> Option<&'static Control> {
    let mapped = folder::map(CONTROL.as_bytes(), false, size_of::<Control>())?;
    SHARED.store(mapped.cast(), Ordering::Release);
    control()
}

/// What the collector shares with all processes; `None` before [`begin`].
pub fn control() -> Option<&'static Control> {
    // SAFETY: once set, the mapping stays; all its fields are atomics.
    unsafe { SHARED.load(Ordering::Acquire).as_ref() }
}

/// Mean number of requested bytes between two sample points; 0 if every call is recorded, or none.
#[inline]
pub fn sample_bytes() -> u64 {
    // Relaxed: the word does not change once the command runs.
    control().map_or(0, |control| control.sample_bytes.load(Ordering::Relaxed))
}

/// Mean number of requested bytes between two points at which a stack is recorded; 1 if every
/// recorded call has one, 0 if none has.
#[inline]
pub fn stack_bytes() -> u64 {
    // Relaxed: the word does not change once the command runs.
    control().map_or(0, |control| control.stack_bytes.load(Ordering::Relaxed))
}

/// Counts a sampled block that cannot be recorded.
#[cold]
pub fn left_out() {
    if let Some(control) = control() {
        control.left_out.fetch_add(1, Ordering::Relaxed);
    }
}

/// Counts a stack that cannot be recorded.
#[cold]
pub fn stack_left_out() {
    if let Some(control) = control() {
        control.stacks_left_out.fetch_add(1, Ordering::Relaxed);
    }
}
