//! Determines the pause between two rounds of the drainer.

use std::time::Duration;

use heapdrome_witness::ring::ENTRIES;

/// First and longest pause between two rounds.
pub(crate) const PAUSE: Duration = Duration::from_micros(500);

/// The shortest pause between two rounds. Each costs a few microseconds.
const SHORTEST_PAUSE: Duration = Duration::from_micros(30);

/// Returns the pause after a round. `fullest` is the number of entries in the fullest ring; `None`
/// if the backlog had no room. The fullest ring should be between a sixteenth and a quarter full:
/// then its thread does not wait, and the round has enough to copy.
pub(crate) fn next_pause(pause: Duration, fullest: Option<u64>) -> Duration {
    match fullest {
        None => PAUSE,
        Some(entries) if entries > ENTRIES / 4 => (pause / 2).max(SHORTEST_PAUSE),
        Some(entries) if entries < ENTRIES / 16 => (pause * 2).min(PAUSE),
        Some(_) => pause,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_follow_the_busiest_thread() {
        let mut pause = PAUSE;
        for _ in 0..10 {
            pause = next_pause(pause, Some(ENTRIES));
        }
        assert_eq!(pause, SHORTEST_PAUSE);
        assert_eq!(next_pause(pause, Some(ENTRIES / 8)), pause);
        for _ in 0..10 {
            pause = next_pause(pause, Some(0));
        }
        assert_eq!(pause, PAUSE);
        assert_eq!(next_pause(SHORTEST_PAUSE, None), PAUSE);
    }
}
