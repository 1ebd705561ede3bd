//! The trimmed mean of logarithms or log ratios from the rounds of a race, and its error, after
//! Yuen (1974).

use crate::summary::{mean, standard_deviation};

/// Minimum number of samples for trimming.
const FEWEST_TO_TRIM: usize = 10;

/// A robust centre and its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trimmed {
    /// The trimmed mean.
    pub centre: f64,
    /// Standard error of the trimmed mean, from the winsorised samples.
    pub error: f64,
}

/// Returns the number of samples that are trimmed at each end of `count` samples: none below ten
/// samples, one from ten on, and from twenty on a share that grows towards a fifth. In small
/// samples, more trimming would make Student's interval too narrow.
pub fn trimmed_at_each_end(count: usize) -> usize {
    if count < FEWEST_TO_TRIM {
        0
    } else {
        ((count - FEWEST_TO_TRIM) / 5).max(1)
    }
}

/// Returns the degrees of freedom of Student's t for the trimmed mean of `count` samples.
pub fn degrees_of_freedom(count: usize) -> usize {
    (count - 2 * trimmed_at_each_end(count)).saturating_sub(1)
}

/// Returns the trimmed mean and its standard error; `None` with fewer than two samples.
pub fn trimmed_mean(samples: &[f64]) -> Option<Trimmed> {
    let count = samples.len();
    let cut = trimmed_at_each_end(count);
    let kept = (count - 2 * cut) as f64;
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let centre = mean(&sorted[cut..count - cut])?;
    let (lowest, highest) = (sorted[cut], sorted[count - 1 - cut]);
    let winsorised: Vec<f64> = sorted
        .iter()
        .map(|value| value.clamp(lowest, highest))
        .collect();
    let deviation = standard_deviation(&winsorised)?;
    let error = deviation * ((count - 1) as f64 / (kept * (kept - 1.0))).sqrt();
    Some(Trimmed { centre, error })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_trimming_it_is_the_mean_and_its_error() {
        let found = trimmed_mean(&[1.0, 2.0, 3.0, 4.0, 5.0]).expect("samples");
        assert!((found.centre - 3.0).abs() < 1e-12);
        assert!((found.error - (2.5_f64 / 5.0).sqrt()).abs() < 1e-12);
        assert_eq!(degrees_of_freedom(5), 4);
    }

    #[test]
    fn with_trimming_it_is_yuens() {
        // Ten samples, of which one is trimmed at each end: the mean of 2 to 9 is 5.5. The
        // winsorised samples are 2 2 3 .. 8 9 9. Their squared distances from 5.5 sum to 2 * (2 *
        // 12.25 + 6.25 + 2.25 + 0.25) = 66.5. The error is sqrt(66.5 / (8 * 7)).
        let samples = [100.0, 2.0, 3.0, 4.0, -50.0, 5.0, 6.0, 7.0, 8.0, 9.0];
        let found = trimmed_mean(&samples).expect("samples");
        assert!((found.centre - 5.5).abs() < 1e-12);
        assert!((found.error - (66.5_f64 / 56.0).sqrt()).abs() < 1e-12);
        assert_eq!(degrees_of_freedom(10), 7);
    }

    #[test]
    fn at_most_a_fifth_is_cut_and_never_all() {
        for count in 0..1000 {
            assert!(trimmed_at_each_end(count) * 5 <= count);
        }
        assert_eq!(
            [9, 10, 19, 20, 60].map(trimmed_at_each_end),
            [0, 1, 1, 2, 10]
        );
        assert_eq!(trimmed_mean(&[]), None);
        assert_eq!(trimmed_mean(&[1.0]), None);
    }
}
