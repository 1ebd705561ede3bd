//! The slowdown of a few runs against others, if there are too few for an interval.

use crate::summary::median;

/// A ratio of times, with its range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slowdown {
    /// Median time of the runs divided by the median of the others.
    pub median: f64,
    /// Time of the fastest run divided by the median of the others.
    pub low: f64,
    /// Time of the slowest run divided by the median of the others.
    pub high: f64,
}

/// Returns the ratio of the times of `runs` to those of `others`. Both use the same unit. Returns
/// `None` if either is empty.
///
/// The range extends from the fastest to the slowest of `runs`. It is not a confidence interval,
/// because there are too few runs.
pub fn slowdown(runs: &[f64], others: &[f64]) -> Option<Slowdown> {
    let (own, usual) = (median(runs)?, median(others)?);
    let low = runs.iter().copied().fold(own, f64::min);
    let high = runs.iter().copied().fold(own, f64::max);
    Some(Slowdown {
        median: own / usual,
        low: low / usual,
        high: high / usual,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slowdown_has_the_range_of_its_runs() {
        let expected = Slowdown {
            median: 2.0,
            low: 1.0,
            high: 4.0,
        };
        let found = slowdown(&[8.0, 2.0, 4.0], &[1.0, 2.0, 9.0]);
        assert_eq!(found, Some(expected));
        assert_eq!(slowdown(&[], &[1.0]), None);
        assert_eq!(slowdown(&[1.0], &[]), None);
    }
}
