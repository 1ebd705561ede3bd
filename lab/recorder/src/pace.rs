//! Determines the pause between two rounds of the drainer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Part of a ring that was filled when the ring was drained, in units of 1/[`FULL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fullness(u64);

/// Fullness of a ring whose thread has to wait.
const FULL: u64 = 1 << 10;

impl Fullness {
    /// Returns the fullness of a ring that held `filled` of at most `room` entries or bytes.
    pub(crate) fn of(filled: u64, room: u64) -> Self {
        Self(filled * FULL / room)
    }
}

/// Fullness of the fullest ring of stacks. The worker drains these rings, but the drainer sets the
/// pace of both threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct FullestStacks(Arc<AtomicU64>);

impl FullestStacks {
    /// Records the fullness of a ring.
    pub(crate) fn note(&self, fullness: Fullness) {
        // Relaxed: the value publishes no other memory.
        self.0.fetch_max(fullness.0, Ordering::Relaxed);
    }

    /// Returns the maximum fullness since the previous call, or 0 if the worker has drained no ring
    /// since then. A worker that falls behind thus does not cause additional rounds.
    pub(crate) fn take(&self) -> Fullness {
        // Relaxed: the value publishes no other memory.
        Fullness(self.0.swap(0, Ordering::Relaxed))
    }
}

/// Initial and longest pause between two rounds.
pub(crate) const PAUSE: Duration = Duration::from_micros(500);

/// The shortest pause between two rounds. Each round costs a few microseconds.
const SHORTEST_PAUSE: Duration = Duration::from_micros(30);

/// Returns the pause after a round. `pause` is the pause before it. `fullest` is the fullness of
/// the fullest ring; `None` if the backlog had no room. The fullest ring should be between a
/// sixteenth and a quarter full: then its thread does not wait, and the round has enough to copy.
pub(crate) fn next_pause(pause: Duration, fullest: Option<Fullness>) -> Duration {
    match fullest {
        None => PAUSE,
        Some(Fullness(parts)) if parts > FULL / 4 => (pause / 2).max(SHORTEST_PAUSE),
        Some(Fullness(parts)) if parts < FULL / 16 => (pause * 2).min(PAUSE),
        Some(_) => pause,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_of_stacks_that_was_not_drained_again_is_not_full() {
        let fullest = FullestStacks::default();
        fullest.note(Fullness::of(3, 4));
        fullest.note(Fullness::of(1, 4));
        assert_eq!(fullest.take(), Fullness(FULL / 4 * 3));
        assert_eq!(fullest.take(), Fullness(0));
    }

    #[test]
    fn rounds_follow_the_busiest_thread() {
        let mut pause = PAUSE;
        for _ in 0..10 {
            pause = next_pause(pause, Some(Fullness(FULL)));
        }
        assert_eq!(pause, SHORTEST_PAUSE);
        assert_eq!(next_pause(pause, Some(Fullness(FULL / 8))), pause);
        for _ in 0..10 {
            pause = next_pause(pause, Some(Fullness(0)));
        }
        assert_eq!(pause, PAUSE);
        assert_eq!(next_pause(SHORTEST_PAUSE, None), PAUSE);
    }
}
