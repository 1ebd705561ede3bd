//! Helpers for the benchmark of false verdicts: the bound of a counted rate, and Welch's test as
//! the usual comparison.

use statrs::distribution::{Beta, ContinuousCDF, StudentsT};

use crate::{mean, standard_deviation};

/// Returns the exact upper bound (Clopper and Pearson, one-sided) on the probability of an event
/// that happened `count` times in `of` trials. `confidence` is, for example, 0.95. The bound is 1
/// if there are no trials, if `count` is not less than `of`, or if `confidence` is NaN.
pub fn upper_bound(count: u64, of: u64, confidence: f64) -> f64 {
    if count >= of || confidence.is_nan() {
        return 1.0;
    }
    let beta = Beta::new(count as f64 + 1.0, (of - count) as f64);
    beta.map_or(1.0, |beta| beta.inverse_cdf(confidence.clamp(0.0, 1.0)))
}

/// Welch's t-test of two independent series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Welch {
    /// Test statistic, positive if the mean of the first series is larger.
    pub t: f64,
    /// The degrees of freedom, after Welch and Satterthwaite.
    pub degrees_of_freedom: f64,
    /// The two-sided p-value.
    pub p_value: f64,
}

/// Applies Welch's test, the usual comparison of two series, as a benchmark for the rule. Returns
/// `None` if a series has fewer than two samples, or if neither series varies.
pub fn welch(first: &[f64], second: &[f64]) -> Option<Welch> {
    let part = |values: &[f64]| {
        let count = values.iter().filter(|value| value.is_finite()).count() as f64;
        Some((
            mean(values)?,
            standard_deviation(values)?.powi(2) / count,
            count - 1.0,
        ))
    };
    let (first, second) = (part(first)?, part(second)?);
    let variance = first.1 + second.1;
    let t = (first.0 - second.0) / variance.sqrt();
    let freedom = variance.powi(2) / (first.1.powi(2) / first.2 + second.1.powi(2) / second.2);
    let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
    t.is_finite().then(|| Welch {
        t,
        degrees_of_freedom: freedom,
        p_value: 2.0 * student.sf(t.abs()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_upper_bound_is_clopper_and_pearsons() {
        // Without events the bound is 1 - 0.05^(1/n).
        assert!((upper_bound(0, 100, 0.95) - (1.0 - 0.05_f64.powf(0.01))).abs() < 1e-9);
        // If the probability of the event equals the bound, 3 trials have at most 1 event with a
        // probability of 5%.
        let p = upper_bound(1, 3, 0.95);
        let q = 1.0 - p;
        assert!((q.powi(3) + 3.0 * p * q * q - 0.05).abs() < 1e-9);
        assert!((upper_bound(50, 1000, 0.95) - 0.0630).abs() < 2e-4);
    }

    #[test]
    fn the_upper_bound_of_no_trials_is_one() {
        for (count, of) in [(0, 0), (3, 3), (4, 3)] {
            assert!((upper_bound(count, of, 0.95) - 1.0).abs() < f64::EPSILON);
        }
        assert!((upper_bound(1, 10, f64::NAN) - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn welchs_test_computed_by_hand() {
        // Means 2 and 5, variances 1 and 4 over 3 samples each. t = -3 / sqrt(5 / 3) = -2.3238.
        // Degrees of freedom (5/3)^2 / ((1/9)/2 + (16/9)/2) = 2.9412.
        let test = welch(&[1.0, 2.0, 3.0], &[3.0, 5.0, 7.0]).expect("two series");
        assert!((test.t + 2.323_790).abs() < 1e-6);
        assert!((test.degrees_of_freedom - 2.941_176).abs() < 1e-6);
        assert!(
            test.p_value > 0.10 && test.p_value < 0.11,
            "{}",
            test.p_value
        );
    }

    #[test]
    fn welchs_test_needs_two_samples_that_vary() {
        assert_eq!(welch(&[], &[1.0, 2.0]), None);
        assert_eq!(welch(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(welch(&[1.0, 1.0], &[2.0, 2.0]), None);
        assert_eq!(welch(&[f64::NAN, 1.0], &[2.0, 3.0]), None);
        assert!(welch(&[1.0, 1.0], &[2.0, 3.0]).is_some());
    }
}
