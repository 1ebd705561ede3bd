//! Distributions of latencies as counted values, which can be merged and asked for quantiles.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How often each value was seen. Values come from a histogram whose buckets are 1% wide or less.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distribution {
    counts: BTreeMap<u64, u64>,
}

/// One point of the complementary cumulative distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// A value in nanoseconds.
    pub value: u64,
    /// How many values are greater.
    pub above: u64,
    /// Their share.
    pub share: f64,
}

impl Distribution {
    /// Of pairs of value and count.
    pub fn new(counts: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut one = Self::default();
        for (value, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
            *one.counts.entry(value).or_default() += count;
        }
        one
    }

    /// Adds another's counts.
    pub fn merge(&mut self, other: &Self) {
        for (value, count) in &other.counts {
            *self.counts.entry(*value).or_default() += count;
        }
    }

    /// How many values were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Their mean; none of nothing.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let count = self.count();
        let sum: f64 = self
            .counts
            .iter()
            .map(|(value, count)| *value as f64 * *count as f64)
            .sum();
        (count > 0).then(|| sum / count as f64)
    }

    /// The least value that at least this share of all values does not exceed; none of nothing.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let wanted = ((self.count() as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (value, count) in &self.counts {
            seen += count;
            if seen >= wanted {
                return Some(*value);
            }
        }
        self.max()
    }

    /// The greatest value.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        self.counts.keys().next_back().copied()
    }

    /// The share of values that are not greater than `value`; none of nothing.
    #[must_use]
    pub fn share_up_to(&self, value: u64) -> Option<f64> {
        let count = self.count();
        let below: u64 = self.counts.range(..=value).map(|(_, count)| count).sum();
        (count > 0).then(|| below as f64 / count as f64)
    }

    /// The complementary cumulative distribution at the document's quantiles, without repetitions.
    #[must_use]
    pub fn ccdf(&self) -> Vec<Point> {
        const SHARES: [f64; 11] = [
            0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999, 1.0,
        ];
        let total = self.count();
        let mut values: Vec<u64> = SHARES
            .iter()
            .filter_map(|share| self.quantile(*share))
            .collect();
        values.dedup();
        let point = |value: u64| {
            let above = self.counts.range(value + 1..).map(|(_, count)| count).sum();
            Point {
                value,
                above,
                share: above as f64 / total as f64,
            }
        };
        values.into_iter().map(point).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_were_seen() {
        let one = Distribution::new([(10, 98), (500, 1), (9000, 1)]);
        assert_eq!(one.count(), 100);
        assert_eq!(one.quantile(0.5), Some(10));
        assert_eq!(one.quantile(0.98), Some(10));
        assert_eq!(one.quantile(0.99), Some(500));
        assert_eq!(one.quantile(1.0), Some(9000));
        assert_eq!(one.max(), Some(9000));
        assert_eq!(one.mean(), Some((980.0 + 9500.0) / 100.0));
        assert_eq!(Distribution::default().quantile(0.5), None);
        assert_eq!(Distribution::default().mean(), None);
    }

    #[test]
    fn shares_count_what_is_not_greater() {
        let one = Distribution::new([(100, 1), (200, 3)]);
        assert_eq!(one.share_up_to(99), Some(0.0));
        assert_eq!(one.share_up_to(100), Some(0.25));
        assert_eq!(one.share_up_to(10_000), Some(1.0));
        assert_eq!(Distribution::default().share_up_to(1), None);
    }

    #[test]
    fn merging_is_counting_together() {
        let mut one = Distribution::new([(1, 2), (3, 0)]);
        one.merge(&Distribution::new([(1, 1), (7, 4)]));
        assert_eq!(one, Distribution::new([(1, 3), (7, 4)]));
    }

    #[test]
    fn the_ccdf_falls_to_nothing() {
        let one = Distribution::new([(100, 50), (80_000, 49), (1_000_000, 1)]);
        let points = one.ccdf();
        assert_eq!(points.first().map(|point| point.above), Some(50));
        assert_eq!(points.last().map(|point| point.share), Some(0.0));
        assert!(points.windows(2).all(|two| two[0].share > two[1].share));
        assert!(Distribution::default().ccdf().is_empty());
    }
}
