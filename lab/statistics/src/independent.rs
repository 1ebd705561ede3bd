//! Intervals for series that were measured in different rounds: the interval of a mean, and the
//! interval of a ratio of two means.
//!
//! The rounds of two races do not pair, so common noise does not cancel out, and the interval is
//! valid for a single look at the end. For series of the same rounds, use [`Rule`](crate::Rule).

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::{mean, standard_deviation};

/// An estimate with a confidence interval at the requested level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Point estimate, which lies inside the interval.
    pub estimate: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// Multiplies the interval by a positive factor, to convert its unit or to correct it.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self {
            estimate: self.estimate * factor,
            low: self.low * factor,
            high: self.high * factor,
        }
    }
}

/// A mean, its standard error and the degrees of freedom.
struct Moments {
    mean: f64,
    error: f64,
    freedom: f64,
}

fn moments(samples: &[f64]) -> Option<Moments> {
    let count = samples.iter().filter(|sample| sample.is_finite()).count() as f64;
    Some(Moments {
        mean: mean(samples)?,
        error: standard_deviation(samples)? / count.sqrt(),
        freedom: count - 1.0,
    })
}

/// Returns the mean of a series, with Student's interval at `confidence` (0.95 is 95%). Returns
/// `None` with fewer than two samples.
pub fn mean_interval(samples: &[f64], confidence: f64) -> Option<Interval> {
    let found = moments(samples)?;
    let half = half_width(found.error, found.freedom, confidence);
    Some(Interval {
        estimate: found.mean,
        low: found.mean - half,
        high: found.mean + half,
    })
}

/// Returns the ratio of the means of two independent series of positive figures, with an interval
/// at `confidence`.
///
/// The interval is Welch's interval of the logarithm of the ratio. The error of each mean is
/// relative to that mean. Returns `None` if either series has fewer than two samples, or a mean is
/// not positive.
pub fn ratio_of_means(first: &[f64], second: &[f64], confidence: f64) -> Option<Interval> {
    let parts = [moments(first)?, moments(second)?];
    if parts.iter().any(|part| part.mean <= 0.0) {
        return None;
    }
    let squares = parts
        .each_ref()
        .map(|part| (part.error / part.mean).powi(2));
    let square: f64 = squares.iter().sum();
    let welch: f64 = squares
        .iter()
        .zip(&parts)
        .map(|(own, part)| own.powi(2) / part.freedom)
        .sum();
    let freedom = if welch > 0.0 {
        square.powi(2) / welch
    } else {
        1.0
    };
    let half = half_width(square.sqrt(), freedom, confidence).exp();
    let ratio = parts[0].mean / parts[1].mean;
    Some(Interval {
        estimate: ratio,
        low: ratio / half,
        high: ratio * half,
    })
}

/// Returns the half-width of Student's interval around an estimate with standard error `error` and
/// `freedom` degrees of freedom.
pub(crate) fn half_width(error: f64, freedom: f64, confidence: f64) -> f64 {
    if error <= 0.0 {
        return 0.0;
    }
    let tail = (1.0 - confidence.clamp(0.0, 1.0)) / 2.0;
    let student = StudentsT::new(0.0, 1.0, freedom);
    student.map_or(f64::INFINITY, |student| -student.inverse_cdf(tail) * error)
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha12Rng;

    use super::*;

    #[test]
    fn a_mean_has_students_interval() {
        // Mean 3, deviation sqrt(2.5), error sqrt(0.5). t(4) at 97.5% is 2.776445.
        let found = mean_interval(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.95).expect("samples");
        let half = 2.776_445_105 * 0.5_f64.sqrt();
        assert!((found.estimate - 3.0).abs() < 1e-12);
        assert!(
            (found.low - (3.0 - half)).abs() < 1e-6 && (found.high - (3.0 + half)).abs() < 1e-6
        );
        assert_eq!(mean_interval(&[1.0], 0.95), None);
    }

    #[test]
    fn a_ratio_by_hand() {
        // Means 12 and 6, deviations sqrt(8/3) and sqrt(2/3) over 4 samples each. Both relative
        // errors are sqrt(8/3) / 2 / 12, so there are 6 degrees of freedom and t = 2.446912. The
        // half-width is t times sqrt(2) times the relative error.
        let first = [10.0, 12.0, 12.0, 14.0];
        let second = [5.0, 6.0, 6.0, 7.0];
        let found = ratio_of_means(&first, &second, 0.95).expect("two series");
        let relative = (8.0_f64 / 3.0).sqrt() / 2.0 / 12.0;
        let half = (2.446_911_851 * relative * 2.0_f64.sqrt()).exp();
        assert!((found.estimate - 2.0).abs() < 1e-12);
        assert!((found.low - 2.0 / half).abs() < 1e-6 && (found.high - 2.0 * half).abs() < 1e-6);
        let halved = found.scaled(0.5);
        assert!((halved.estimate - 1.0).abs() < 1e-12 && halved.low < 1.0);
    }

    #[test]
    fn what_cannot_be_compared_has_no_interval() {
        assert_eq!(ratio_of_means(&[1.0], &[1.0, 2.0], 0.95), None);
        assert_eq!(ratio_of_means(&[1.0, 2.0], &[0.0, 0.0], 0.95), None);
        let same = ratio_of_means(&[2.0, 2.0], &[1.0, 1.0], 0.95).expect("two series");
        assert_eq!((same.low, same.high), (2.0, 2.0));
    }

    /// Draws one normal deviate by the method of Box and Muller.
    fn normal(draw: &mut ChaCha12Rng) -> f64 {
        let (one, two): (f64, f64) = (draw.random(), draw.random());
        (-2.0 * (1.0 - one).ln()).sqrt() * (std::f64::consts::TAU * two).cos()
    }

    /// Returns the share of 4000 pairs of series for which the 95% interval contains the true
    /// ratio.
    fn coverage(counts: [usize; 2], noise: [f64; 2], skewed: bool) -> f64 {
        let mut draw = ChaCha12Rng::seed_from_u64(11);
        let truth = 1.7;
        // A log-normal time has the mean exp(s^2 / 2).
        let mut series = |count: usize, mean: f64, deviation: f64| -> Vec<f64> {
            let one = |_| match skewed {
                true => mean * (deviation * normal(&mut draw) - deviation * deviation / 2.0).exp(),
                false => mean * (1.0 + deviation * normal(&mut draw)),
            };
            (0..count).map(one).collect()
        };
        let trials = 4000;
        let held = (0..trials).filter(|_| {
            let first = series(counts[0], truth, noise[0]);
            let second = series(counts[1], 1.0, noise[1]);
            let found = ratio_of_means(&first, &second, 0.95).expect("two series");
            found.low <= truth && truth <= found.high
        });
        held.count() as f64 / f64::from(trials)
    }

    /// The coverage must be 95%, within three standard errors of 4000 trials (1%) and the cost of
    /// skewed noise. An interval that is too narrow or too wide by a fifth would fail.
    #[test]
    fn the_interval_of_a_ratio_covers_as_it_says() {
        for (counts, noise, skewed) in [
            ([10, 10], [0.02, 0.02], false),
            ([10, 10], [0.15, 0.02], false),
            ([5, 5], [0.05, 0.05], true),
            ([10, 5], [0.10, 0.03], true),
        ] {
            let covered = coverage(counts, noise, skewed);
            assert!(
                (0.93..=0.97).contains(&covered),
                "{counts:?} {noise:?}: {covered}"
            );
        }
    }
}
