//! A test of whether a series rises or falls over the race.

use statrs::function::erf::erfc;

use crate::median;

/// Number of samples above which only some of the pairwise slopes are computed.
const LONG: usize = 1_000;

/// A trend over the rounds, by the test of Mann and Kendall.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// Kendall's tau-a: 1 if each sample is above all earlier samples, -1 if each is below.
    pub tau: f64,
    /// Two-sided probability of a trend at least this strong in a series without a trend.
    pub p_value: f64,
    /// Change per round as a fraction of the series' median; 0.001 is 0.1% more with each round.
    /// The change is the median slope over all pairs, or over a part of the pairs of a long series,
    /// after Theil and Sen. Zero if the series' median is zero.
    pub slope_per_round: f64,
}

/// Tests a series for a monotone trend. Returns `None` with fewer than five finite samples.
///
/// The p-value uses the normal approximation with continuity correction and a variance corrected
/// for ties. The test assumes independent samples. A slow period that spans several rounds makes
/// small p-values more frequent, so the trend is a remark on the race, never a verdict.
pub fn drift(values: &[f64]) -> Option<Drift> {
    let points: Vec<(f64, f64)> = values
        .iter()
        .enumerate()
        .filter(|(_, value)| value.is_finite())
        .map(|(round, value)| (round as f64, *value))
        .collect();
    if points.len() < 5 {
        return None;
    }
    let mut score = 0_i64;
    for (place, early) in points.iter().enumerate() {
        for late in &points[place + 1..] {
            score += i64::from(late.1 > early.1) - i64::from(late.1 < early.1);
        }
    }
    let pairs = points.len() * (points.len() - 1) / 2;
    let slope = median(&slopes(&points))?;
    let centre = median(values)?;
    Some(Drift {
        tau: score as f64 / pairs as f64,
        p_value: p_value(score, &points),
        slope_per_round: if centre == 0.0 { 0.0 } else { slope / centre },
    })
}

/// Returns the slopes between pairs of points. A long series uses only pairs that are half the
/// series apart. This loses little accuracy and saves memory.
fn slopes(points: &[(f64, f64)]) -> Vec<f64> {
    let slope = |early: &(f64, f64), late: &(f64, f64)| (late.1 - early.1) / (late.0 - early.0);
    if points.len() > LONG {
        let later = &points[points.len() / 2..];
        return points
            .iter()
            .zip(later)
            .map(|(early, late)| slope(early, late))
            .collect();
    }
    let from = |place: usize| {
        let early = &points[place];
        points[place + 1..]
            .iter()
            .map(move |late| slope(early, late))
    };
    (0..points.len()).flat_map(from).collect()
}

/// Returns the two-sided p-value of Kendall's score.
fn p_value(score: i64, points: &[(f64, f64)]) -> f64 {
    let weight = |count: f64| count * (count - 1.0) * (2.0 * count + 5.0);
    let mut sorted: Vec<f64> = points.iter().map(|point| point.1).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let ties: f64 = sorted
        .chunk_by(|a, b| a == b)
        .map(|tie| weight(tie.len() as f64))
        .sum();
    let variance = (weight(points.len() as f64) - ties) / 18.0;
    if variance <= 0.0 || score == 0 {
        return 1.0;
    }
    let z = (score.abs() - 1) as f64 / variance.sqrt();
    erfc(z / std::f64::consts::SQRT_2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_samples_give_nothing() {
        assert_eq!(drift(&[]), None);
        assert_eq!(drift(&[1.0, 2.0, f64::NAN, 3.0, 4.0]), None);
    }

    #[test]
    fn a_trend_computed_by_hand() {
        // Two pairs fall, (3, 2) and (5, 4), so the score is 8 - 2 = 6 of 10. Variance 5 * 4 * 15 /
        // 18 = 16.667; z = 5 / 4.0825 = 1.2247; p = 0.2207.
        let found = drift(&[1.0, 3.0, 2.0, 5.0, 4.0]).expect("five samples");
        assert!((found.tau - 0.6).abs() < 1e-12);
        assert!((found.p_value - 0.2207).abs() < 1e-4, "{}", found.p_value);
        // The sorted slopes are -1 -1 .333 .5 .75 1 1 1.333 2 3, with a median of .875. The slope
        // per round is this median divided by the samples' median, 3.
        assert!((found.slope_per_round - 0.875 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn ties_lower_the_variance() {
        // The score of 1 1 2 2 3 is 8. Ties subtract 2 * 18 from 300: variance 264 / 18 = 14.667.
        let found = drift(&[1.0, 1.0, 2.0, 2.0, 3.0]).expect("five samples");
        assert!((found.tau - 0.8).abs() < 1e-12);
        let z: f64 = 7.0 / (264.0_f64 / 18.0).sqrt();
        assert!((found.p_value - erfc(z / std::f64::consts::SQRT_2)).abs() < 1e-12);
    }

    #[test]
    fn equal_samples_and_zeros_show_no_drift() {
        for value in [0.0, 5.0] {
            let found = drift(&[value; 12]).expect("enough samples");
            assert_eq!(
                (found.tau, found.p_value, found.slope_per_round),
                (0.0, 1.0, 0.0)
            );
        }
    }

    #[test]
    fn a_long_series_has_the_same_slope() {
        let wave = |round: usize| 50.0 + round as f64 * 0.01 + [0.3, -0.2, 0.0][round % 3];
        let long: Vec<f64> = (0..3000).map(wave).collect();
        let found = drift(&long).expect("enough samples");
        assert!(
            (found.slope_per_round * 65.0 - 0.01).abs() < 1e-3,
            "{found:?}"
        );
        assert!(found.p_value < 1e-9);
    }

    #[test]
    fn a_steady_fall_is_told_with_its_slope() {
        let values: Vec<f64> = (0..21).map(|round| 100.0 - f64::from(round)).collect();
        let found = drift(&values).expect("enough samples");
        assert!((found.tau + 1.0).abs() < 1e-12);
        assert!(found.p_value < 1e-9);
        assert!((found.slope_per_round + 1.0 / 90.0).abs() < 1e-12);
    }
}
