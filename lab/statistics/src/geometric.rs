//! The geometric mean of ratios from several races.

use crate::independent::half_width;
use crate::trimmed::degrees_of_freedom;
use crate::{Estimate, Interval};

/// Returns the geometric mean of ratios from independent races, with an interval at `confidence`
/// (0.95 is 95%). Returns `None` without ratios.
///
/// The rounds of different races are independent, so the squares of the errors add up. The degrees
/// of freedom are those of Welch (1947) and Satterthwaite (1946). The interval is valid for a
/// single look at the end, unlike the intervals of [`Rule`](crate::Rule), which hold at every
/// round. The interval is never narrower than the resolution of the figures allows.
pub fn geometric_mean(ratios: &[Estimate], confidence: f64) -> Option<Interval> {
    let count = ratios.len() as f64;
    let square = |one: &Estimate| one.deviation.powi(2) / one.rounds as f64;
    let squares: f64 = ratios.iter().map(square).sum();
    let share = |one: &Estimate| square(one).powi(2) / degrees_of_freedom(one.rounds) as f64;
    let shares: f64 = ratios.iter().map(share).sum();
    let freedom = if shares > 0.0 {
        squares.powi(2) / shares
    } else {
        1.0
    };
    let mean = |of: fn(&Estimate) -> f64| ratios.iter().map(of).sum::<f64>() / count;
    let centre = mean(|one| one.ratio.ln());
    let half = half_width(squares.sqrt() / count, freedom, confidence).max(mean(|one| one.floor));
    (count > 0.0).then(|| Interval {
        estimate: centre.exp(),
        low: (centre - half).exp(),
        high: (centre + half).exp(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha12Rng;

    use crate::Rule;

    fn estimate(ratio: f64, deviation: f64) -> Estimate {
        Estimate {
            ratio,
            low: 0.0,
            high: f64::INFINITY,
            rounds: 5,
            deviation,
            floor: 0.0,
        }
    }

    #[test]
    fn a_mean_by_hand() {
        // Both errors are 0.1 / sqrt(5). The root of the sum of their squares, divided by 2, is
        // 0.0316228. With 8 degrees of freedom, t = 2.306004.
        let found = geometric_mean(&[estimate(0.5, 0.1), estimate(2.0, 0.1)], 0.95);
        let found = found.expect("two ratios");
        let half = (2.306_004_135 * 0.1 / 5.0_f64.sqrt() / 2.0_f64.sqrt()).exp();
        assert!((found.estimate - 1.0).abs() < 1e-12);
        assert!((found.high - half).abs() < 1e-6 && (found.low - 1.0 / half).abs() < 1e-6);
        assert_eq!(geometric_mean(&[], 0.95), None);
    }

    #[test]
    fn what_does_not_vary_is_as_wide_as_its_resolution() {
        let step = Estimate {
            floor: 0.01,
            ..estimate(2.0, 0.0)
        };
        let found = geometric_mean(&[step, step], 0.95).expect("two ratios");
        assert!((found.high / found.low - 0.02_f64.exp()).abs() < 1e-12);
    }

    /// The expected coverage is 95%. Three standard errors of 2000 sets of four races are 1.5%.
    #[test]
    fn the_interval_covers_as_it_says() {
        let rule = Rule::new(0.05, 1);
        for rounds in [5, 10] {
            let mut draw = ChaCha12Rng::seed_from_u64(7);
            // The sum of twelve uniform draws is close to normal.
            let mut normal = || (0..12).map(|_| draw.random::<f64>()).sum::<f64>() - 6.0;
            let mut held = 0;
            for _ in 0..2000 {
                let races: Vec<Estimate> = [0.01, 0.03, 0.03, 0.1]
                    .iter()
                    .filter_map(|noise| {
                        let mut series = || -> Vec<f64> {
                            (0..rounds).map(|_| (noise * normal()).exp()).collect()
                        };
                        rule.compare(&series(), &series(), 0.0)
                    })
                    .collect();
                let found = geometric_mean(&races, 0.95).expect("four races");
                held += i32::from(found.low <= 1.0 && 1.0 <= found.high);
            }
            let covered = f64::from(held) / 2000.0;
            assert!((0.93..=0.975).contains(&covered), "{rounds}: {covered}");
        }
    }
}
