//! Decides whether a series only grows, and how fast.

use statrs::distribution::{ContinuousCDF as _, Normal, StudentsT};

use crate::mean;

/// Number of batches: large enough for a t quantile near the normal one, and small enough that the
/// means of different batches are almost uncorrelated.
const BATCHES: usize = 10;

/// Maximum fall from one batch to a later one, in residual standard deviations.
const NOISE: f64 = 2.0;

/// Minimum ratio of the slope in the second half to the slope in the first half.
const STEADY: f64 = 0.5;

/// Variance of the least-squares slope, scaled to the whole time, divided by the variance of the
/// total growth. For a sum of independent steps (Brownian motion), it is 6 / 5.
const OF_STEPS: f64 = 1.2;

/// Rate at which a series grows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// Change from one sample to the next.
    pub slope: f64,
    /// Confidence interval of the slope.
    pub interval: [f64; 2],
}

/// Returns the growth of a series that only grows; `None` for any other series.
///
/// Consecutive samples are correlated. The series is therefore divided into ten batches: the longer
/// the batches, the less their means are correlated (batch means: Conway, "Some Tactical Problems
/// in Digital Simulation", Management Science 10, 1963; Law and Kelton, "Simulation Modeling and
/// Analysis"). A line is fitted to the means by least squares, and its slope has Student's interval
/// with eight degrees of freedom. For a series without a trend, this interval excludes zero with
/// probability `error`.
///
/// The series only grows if three things hold:
/// - the interval is above zero;
/// - no batch lies below an earlier batch by more than two residual standard deviations;
/// - the slope of the second half is at least half the slope of the first. A cache that fills grows
///   ever more slowly.
///
/// If the values are estimates, `measured` is the variance of their estimated growth over the whole
/// time; otherwise it is 0. The errors of the steps accumulate, so they do not scatter about the
/// line. The interval therefore includes them in addition.
///
/// Leading samples that do not fill a batch are ignored. Each batch needs at least two samples.
pub fn only_grows(values: &[f64], error: f64, measured: f64) -> Option<Growth> {
    let length = values.len() / BATCHES;
    if length < 2 {
        return None;
    }
    let used = &values[values.len() - length * BATCHES..];
    let means: Option<Vec<f64>> = used.chunks_exact(length).map(mean).collect();
    let means = means?;
    let line = Line::through(&means);
    let deviation = line.deviation(&means);
    let freedom = (BATCHES - 2) as f64;
    let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
    let scatter = student.inverse_cdf(1.0 - error / 2.0) * deviation / spread(BATCHES).sqrt();
    let steps = (OF_STEPS * measured).sqrt() / BATCHES as f64;
    let steps = Normal::standard().inverse_cdf(1.0 - error / 2.0) * steps;
    let half = scatter.hypot(steps);
    let (first, second) = means.split_at(BATCHES / 2);
    let is_steady = Line::through(second).slope >= STEADY * Line::through(first).slope;
    let grows = line.slope - half > 0.0 && is_steady && largest_fall(&means) <= NOISE * deviation;
    let each = length as f64;
    grows.then(|| Growth {
        slope: line.slope / each,
        interval: [(line.slope - half) / each, (line.slope + half) / each],
    })
}

/// Returns the sum of the squared distances of `0, 1, ... count - 1` from their mean.
fn spread(count: usize) -> f64 {
    let count = count as f64;
    count * (count * count - 1.0) / 12.0
}

/// Returns the largest fall from a value to a later one.
fn largest_fall(values: &[f64]) -> f64 {
    let mut highest = f64::NEG_INFINITY;
    let falls = values.iter().map(|value| {
        highest = highest.max(*value);
        highest - value
    });
    falls.fold(0.0, f64::max)
}

/// A line fitted by least squares to values at 0, 1, 2 and so on.
struct Line {
    start: f64,
    slope: f64,
}

impl Line {
    fn through(values: &[f64]) -> Self {
        let middle = (values.len() as f64 - 1.0) / 2.0;
        let centre = mean(values).unwrap_or(0.0);
        let places = values.iter().enumerate();
        let products = places.map(|(place, value)| (place as f64 - middle) * (value - centre));
        let slope = products.sum::<f64>() / spread(values.len());
        Self {
            start: centre - slope * middle,
            slope,
        }
    }

    /// Returns the standard deviation of the values from the line.
    fn deviation(&self, values: &[f64]) -> f64 {
        let places = values.iter().enumerate();
        let squares = places.map(|(place, value)| {
            let residual = value - self.start - self.slope * place as f64;
            residual * residual
        });
        (squares.sum::<f64>() / (values.len() as f64 - 2.0)).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    const ERROR: f64 = 0.05;

    #[test]
    fn a_line_grows_by_its_slope() {
        let values: Vec<f64> = (0..203).map(|at| 7.0 + 3.0 * f64::from(at)).collect();
        let found = only_grows(&values, ERROR, 0.0).expect("it grows");
        assert!((found.slope - 3.0).abs() < 1e-9, "{found:?}");
        assert!(found.interval.iter().all(|end| (end - 3.0).abs() < 1e-9));
    }

    #[test]
    fn an_interval_computed_by_hand() {
        // Ten batches of two equal values: 0 1 2 3 4 5 6 7 8 9, with 1 added in every other batch.
        // The products of positions and values sum to 82.5 + 2.5 = 85, so the slope is 1.0303 for
        // each batch. The squared residuals sum to 2.5 - 2.5^2 / 82.5 = 2.42424, so the deviation
        // is 0.55048 and the slope's standard error 0.060606. The quantile with 8 degrees of
        // freedom is 2.30600.
        let values: Vec<f64> = (0..20).map(|at| f64::from(at / 2 + (at / 2) % 2)).collect();
        let found = only_grows(&values, ERROR, 0.0).expect("it grows");
        assert!((found.slope * 2.0 - 1.0303).abs() < 1e-4, "{found:?}");
        let half = (found.interval[1] - found.interval[0]) * 2.0 / 2.0;
        assert!((half - 0.060_606 * 2.306).abs() < 1e-4, "{half}");
    }

    #[test]
    fn the_interval_includes_the_error_of_estimates() {
        let values: Vec<f64> = (0..200).map(f64::from).collect();
        let found = only_grows(&values, ERROR, 25.0).expect("it grows");
        // The sum of the errors of the two hundred steps has the variance 25. The variance of the
        // fitted slope, scaled to the whole time, is 1.2 times as large. The quantile is that of
        // the normal distribution.
        let half = 1.96 * (1.2_f64 * 25.0).sqrt() / 200.0;
        assert!(
            (found.interval[1] - found.slope - half).abs() < 1e-4,
            "{found:?}"
        );
        assert_eq!(only_grows(&values, ERROR, 1e5), None);
    }

    #[test]
    fn what_does_not_only_grow_is_none() {
        let series = |of: &dyn Fn(f64) -> f64| -> Vec<f64> {
            (0..200).map(|at| of(f64::from(at) / 200.0)).collect()
        };
        for (name, values) in [
            ("constant", series(&|_| 5.0)),
            ("falls", series(&|at| 9.0 - at)),
            ("fills, then stays", series(&|at| at.min(0.4))),
            (
                "fills ever more slowly",
                series(&|at| 1.0 - (-5.0 * at).exp()),
            ),
            (
                "is emptied once",
                series(&|at| if at < 0.7 { at } else { at - 0.6 }),
            ),
            ("waves", series(&|at| (20.0 * at).sin())),
            ("short", vec![1.0, 2.0, 3.0]),
            ("not a number", vec![f64::NAN; 200]),
        ] {
            assert_eq!(only_grows(&values, ERROR, 0.0), None, "{name}");
        }
    }

    /// Returns a series without a trend. Its samples are correlated over about `memory` samples.
    fn stationary(draws: &mut ChaCha8Rng, memory: f64) -> Vec<f64> {
        let keep = (-1.0 / memory).exp();
        let mut value = 0.0;
        let mut next = || {
            let shock: f64 = (0..12).map(|_| draws.random::<f64>()).sum::<f64>() - 6.0;
            value = keep * value + (1.0 - keep * keep).sqrt() * shock;
            value
        };
        (0..20 * memory as usize).for_each(|_| {
            next();
        });
        (0..200).map(|_| next()).collect()
    }

    #[test]
    fn a_series_without_a_trend_grows_rarely() {
        let mut draws = ChaCha8Rng::seed_from_u64(20_261_125);
        for memory in [0.5, 2.0, 5.0, 10.0, 20.0] {
            let found = (0..2000)
                .filter(|_| only_grows(&stationary(&mut draws, memory), ERROR, 0.0).is_some());
            let share = found.count() as f64 / 2000.0;
            assert!(share <= 0.05, "{memory}: {share}");
        }
    }

    #[test]
    fn growth_within_noise_is_found_with_its_slope() {
        let mut draws = ChaCha8Rng::seed_from_u64(3);
        let (mut found, mut inside) = (0, 0);
        for _ in 0..500 {
            let noise = stationary(&mut draws, 2.0);
            let values: Vec<f64> = (0..)
                .map(f64::from)
                .zip(&noise)
                .map(|(at, one)| 0.05 * at + one)
                .collect();
            if let Some(growth) = only_grows(&values, ERROR, 0.0) {
                found += 1;
                inside += i32::from(growth.interval[0] <= 0.05 && 0.05 <= growth.interval[1]);
            }
        }
        assert!(found > 480, "{found}");
        assert!(
            f64::from(inside) > 0.92 * f64::from(found),
            "{inside} of {found}"
        );
    }
}
