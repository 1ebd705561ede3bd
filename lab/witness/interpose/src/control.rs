//! Reads the collector's settings for the recording, and counts blocks and stacks that cannot be
//! recorded.

use core::sync::atomic::Ordering;

use crate::own::control;

/// Returns the mean number of requested bytes between two sample points; 0 if every call or no call
/// is recorded.
#[inline]
pub fn sample_bytes() -> u64 {
    // Relaxed: the word does not change after the command has started.
    control().map_or(0, |control| control.sample_bytes.load(Ordering::Relaxed))
}

/// Returns the mean number of requested bytes between two points at which a stack is recorded; 1 if
/// every recorded call has one, 0 if none has.
#[inline]
pub fn stack_bytes() -> u64 {
    // Relaxed: the word does not change after the command has started.
    control().map_or(0, |control| control.stack_bytes.load(Ordering::Relaxed))
}

/// Returns the minimum duration, in ticks, of a timed call that counts as interrupted.
#[inline]
pub fn interrupted() -> u64 {
    // Relaxed: the word does not change after the command has started.
    control().map_or(0, |control| control.interrupted.load(Ordering::Relaxed))
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
