//! Event count: a sleep that another thread can end, without lost wakeups.

use crate::atomic::{
    AtomicU32,
    Ordering::{Acquire, Release},
};
use crate::futex::{wait, wake_one};

/// Counts events, and lets a thread sleep until the next one: an eventcount, after Reed and
/// Kanodia, "Synchronization with Eventcounts and Sequencers", Communications of the ACM 22 (2),
/// 1979.
///
/// A waiting thread [reads](Self::read) the count, then checks whether the event that it waits for
/// has happened, and [sleeps](Self::sleep) if not. An event between the check and the sleep changes
/// the count, so the sleep ends at once.
#[derive(Debug)]
pub struct EventCount(AtomicU32);

impl EventCount {
    /// Creates a count of zero.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Returns the number of events so far, modulo 2^32.
    #[must_use]
    pub fn read(&self) -> u32 {
        // Acquire: pairs with the release in `advance`, so that a thread that sees the count also
        // sees the event.
        self.0.load(Acquire)
    }

    /// Counts an event, and wakes the sleeping thread, if any.
    pub fn advance(&self) {
        // Release: pairs with the acquire in `read`.
        self.0.fetch_add(1, Release);
        wake_one(&self.0);
    }

    /// Sleeps until the count differs from `seen`, for at most `milliseconds`; may return early.
    /// Only one thread at a time may sleep.
    pub fn sleep(&self, seen: u32, milliseconds: u64) {
        wait(&self.0, seen, Some(milliseconds));
    }
}

impl Default for EventCount {
    fn default() -> Self {
        Self::new()
    }
}
