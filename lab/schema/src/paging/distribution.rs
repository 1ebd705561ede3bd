//! Distributions of latencies, which can be merged and queried for quantiles.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Nanoseconds;

/// A distribution of times, stored as the number of occurrences of each time. The times come from a
/// histogram in which the width of each bucket is at most 1% of the time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distribution {
    counts: BTreeMap<Nanoseconds, u64>,
}

/// One point of the complementary cumulative distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Time at this point.
    pub time: Nanoseconds,
    /// Number of longer times.
    pub above: u64,
    /// Share of longer times.
    pub share: f64,
}

impl Distribution {
    /// Creates a distribution from pairs of a time and the number of its occurrences.
    pub fn new(counts: impl IntoIterator<Item = (Nanoseconds, u64)>) -> Self {
        let mut one = Self::default();
        for (time, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
            *one.counts.entry(time).or_default() += count;
        }
        one
    }

    /// Adds the counts of another distribution.
    pub fn merge(&mut self, other: &Self) {
        for (time, count) in &other.counts {
            *self.counts.entry(*time).or_default() += count;
        }
    }

    /// Returns the number of measured times.
    pub fn count(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Returns the mean in nanoseconds; `None` for an empty distribution.
    pub fn mean_ns(&self) -> Option<f64> {
        let count = self.count();
        let sum: f64 = self
            .counts
            .iter()
            .map(|(time, count)| time.0 as f64 * *count as f64)
            .sum();
        (count > 0).then(|| sum / count as f64)
    }

    /// Returns the quantile: the shortest time such that at least this share of all times is not
    /// longer. Returns `None` for an empty distribution.
    pub fn quantile(&self, share: f64) -> Option<Nanoseconds> {
        let wanted = ((self.count() as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (time, count) in &self.counts {
            seen += count;
            if seen >= wanted {
                return Some(*time);
            }
        }
        self.max()
    }

    /// Returns the longest time; `None` for an empty distribution.
    pub fn max(&self) -> Option<Nanoseconds> {
        self.counts.keys().next_back().copied()
    }

    /// Returns the share of times that are not longer than `time`; `None` for an empty
    /// distribution.
    pub fn share_up_to(&self, time: Nanoseconds) -> Option<f64> {
        let count = self.count();
        let below: u64 = self.counts.range(..=time).map(|(_, count)| count).sum();
        (count > 0).then(|| below as f64 / count as f64)
    }

    /// Returns the complementary cumulative distribution at the quantiles of the published
    /// document, without duplicate points.
    pub fn ccdf(&self) -> Vec<Point> {
        const SHARES: [f64; 11] = [
            0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999, 1.0,
        ];
        let total = self.count();
        let mut times: Vec<Nanoseconds> = SHARES
            .iter()
            .filter_map(|share| self.quantile(*share))
            .collect();
        times.dedup();
        let point = |time: Nanoseconds| {
            let above = self
                .counts
                .range(time + Nanoseconds(1)..)
                .map(|(_, count)| count)
                .sum();
            Point {
                time,
                above,
                share: above as f64 / total as f64,
            }
        };
        times.into_iter().map(point).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times<const N: usize>(pairs: [(u64, u64); N]) -> Distribution {
        Distribution::new(pairs.map(|(time, count)| (Nanoseconds(time), count)))
    }

    #[test]
    fn quantiles_are_values_that_were_seen() {
        let one = times([(10, 98), (500, 1), (9000, 1)]);
        assert_eq!(one.count(), 100);
        assert_eq!(one.quantile(0.5), Some(Nanoseconds(10)));
        assert_eq!(one.quantile(0.98), Some(Nanoseconds(10)));
        assert_eq!(one.quantile(0.99), Some(Nanoseconds(500)));
        assert_eq!(one.quantile(1.0), Some(Nanoseconds(9000)));
        assert_eq!(one.max(), Some(Nanoseconds(9000)));
        assert_eq!(one.mean_ns(), Some((980.0 + 9500.0) / 100.0));
        assert_eq!(Distribution::default().quantile(0.5), None);
        assert_eq!(Distribution::default().mean_ns(), None);
    }

    #[test]
    fn shares_count_what_is_not_greater() {
        let one = times([(100, 1), (200, 3)]);
        assert_eq!(one.share_up_to(Nanoseconds(99)), Some(0.0));
        assert_eq!(one.share_up_to(Nanoseconds(100)), Some(0.25));
        assert_eq!(one.share_up_to(Nanoseconds(10_000)), Some(1.0));
        assert_eq!(Distribution::default().share_up_to(Nanoseconds(1)), None);
    }

    #[test]
    fn merging_is_counting_together() {
        let mut one = times([(1, 2), (3, 0)]);
        one.merge(&times([(1, 1), (7, 4)]));
        assert_eq!(one, times([(1, 3), (7, 4)]));
    }

    #[test]
    fn the_ccdf_falls_to_nothing() {
        let one = times([(100, 50), (80_000, 49), (1_000_000, 1)]);
        let points = one.ccdf();
        assert_eq!(points.first().map(|point| point.above), Some(50));
        assert_eq!(points.last().map(|point| point.share), Some(0.0));
        assert!(points.windows(2).all(|two| two[0].share > two[1].share));
        assert!(Distribution::default().ccdf().is_empty());
    }
}
