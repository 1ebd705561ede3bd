//! A sleep that ends when something has happened, and misses nothing.

use crate::atomic::{
    AtomicU32,
    Ordering::{Acquire, Release},
};
use crate::futex::{wait, wake_one};

/// Counts events, and lets a thread sleep until the next one: an eventcount, after Reed and
/// Kanodia, "Synchronization with Eventcounts and Sequencers", Communications of the ACM 22 (2),
/// 1979.
///
/// Who waits [reads](Self::read) the count, then looks whether what it waits for has happened, and
/// [sleeps](Self::sleep) if not. What happens between the look and the sleep has changed the count
/// by then.
#[derive(Debug)]
pub struct EventCount(AtomicU32);

impl EventCount {
    /// Nothing has happened.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// How many events there were, modulo 2^32.
    #[must_use]
    pub fn read(&self) -> u32 {
        // Acquire: pairs with the release in `advance`: who sees the count sees what happened.
        self.0.load(Acquire)
    }

    /// Counts one more, and wakes a thread that sleeps.
    pub fn advance(&self) {
        // Release: pairs with the acquire in `read`.
        self.0.fetch_add(1, Release);
        wake_one(&self.0);
    }

    /// Sleeps until there were others than `seen` events, for at most some milliseconds; may return
    /// early. One thread at a time may do so.
    pub fn sleep(&self, seen: u32, milliseconds: u64) {
        wait(&self.0, seen, Some(milliseconds));
    }
}

impl Default for EventCount {
    fn default() -> Self {
        Self::new()
    }
}
