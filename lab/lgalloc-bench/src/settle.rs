//! Detection of the end of the warm-up, in which the first evictions write pages to swap and cost
//! more than later ones.

use std::time::{Duration, Instant};

use heapdrome_paging::Counters;

/// Duration of a measuring window.
const WINDOW: Duration = Duration::from_millis(250);
/// Number of consecutive windows that must each be similar to the previous one.
const ALIKE: u32 = 3;

/// Detector that reports when the number of pages written to swap per operation has settled.
#[derive(Debug, Default)]
pub struct Settling {
    last: Option<f64>,
    alike: u32,
}

impl Settling {
    /// Adds a window's number of pages written to swap per operation. Returns whether write-back
    /// has settled.
    pub fn settled_by(&mut self, written_per_operation: f64) -> bool {
        // Windows are similar if their figures are within 10% of each other, or both close to zero.
        let close = |last: f64| {
            let larger = last.max(written_per_operation);
            larger < 0.01 || (last - written_per_operation).abs() <= 0.1 * larger
        };
        self.alike = match self.last.is_some_and(close) {
            true => self.alike + 1,
            false => 0,
        };
        self.last = Some(written_per_operation);
        self.alike >= ALIKE
    }
}

/// Waits until write-back has settled, or for `longest`. Returns false if it did not settle.
pub fn wait(longest: Duration, operations: impl Fn() -> u64) -> bool {
    let end = Instant::now() + longest;
    let written = || Counters::now().get("pswpout").unwrap_or(0);
    let mut settling = Settling::default();
    let (mut pages, mut count) = (written(), operations());
    while Instant::now() < end {
        std::thread::sleep(WINDOW);
        let (pages_now, count_now) = (written(), operations());
        let done = count_now.saturating_sub(count).max(1);
        if settling.settled_by(pages_now.saturating_sub(pages) as f64 / done as f64) {
            return true;
        }
        (pages, count) = (pages_now, count_now);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_windows_alike_are_settled_and_a_jump_begins_again() {
        let mut one = Settling::default();
        let seen = [1.0, 0.5, 0.52, 0.51, 0.9, 0.9, 0.9, 0.9];
        let settled: Vec<bool> = seen.iter().map(|now| one.settled_by(*now)).collect();
        assert_eq!(
            settled,
            [false, false, false, false, false, false, false, true]
        );
    }

    #[test]
    fn nothing_written_is_settled_after_four_windows() {
        let mut one = Settling::default();
        assert_eq!(
            [0.0; 4].map(|none| one.settled_by(none)),
            [false, false, false, true]
        );
    }

    #[test]
    fn the_wait_ends_in_time() {
        assert!(!wait(Duration::from_millis(1), || 0));
    }
}
