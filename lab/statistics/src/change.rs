//! The change of a figure from one race to another.
//!
//! The rounds of two races do not pair, so the two estimates are independent. The change is the
//! difference of their logarithms, and its variance is the sum of both variances. Each estimate is
//! the trimmed mean of logarithms. The two are compared by the method of Yuen (1974), with the
//! degrees of freedom of Welch (1947) and Satterthwaite (1946). `docs/statistics-results.md` lists
//! the error rates.

use crate::Interval;
use crate::independent::half_width;
use crate::rounds::{half_a_step, log_ratios, logarithms};
use crate::rule::FEWEST_ROUNDS;
use crate::trimmed::{Trimmed, degrees_of_freedom, trimmed_mean};

/// Share of the level that is spent. The rest is a reserve for races that stop when they are
/// precise, because a race whose noise is small by chance stops early. Simulations show that the
/// reserve is large enough.
const SPENDABLE: f64 = 0.5;

/// Values of one figure of one entrant in one race, in the order of the rounds.
#[derive(Clone, Copy, Debug)]
pub struct Figures<'a> {
    /// The entrant's own values.
    pub own: &'a [f64],
    /// The baseline's values in the same rounds, if the ratio to the baseline is compared.
    pub baseline: Option<&'a [f64]>,
}

impl<'a> Figures<'a> {
    /// Returns the entrant's values, without a baseline.
    pub fn alone(own: &'a [f64]) -> Self {
        Self {
            own,
            baseline: None,
        }
    }
}

/// One race's estimate of the logarithm of a figure, or of its ratio to the baseline.
struct Side {
    trimmed: Trimmed,
    freedom: f64,
    /// Maximum error from the resolution of the figures, on the log scale.
    floor: f64,
}

/// Returns the factor by which a figure changed from `old` to `new`; 1.02 is 2% more. The interval
/// has the given confidence (0.95 is 95%), and is valid for a single look at two finished races.
///
/// If both sides have the baseline's figures, the factor compares the two ratios to the baseline,
/// so differences between the machines cancel out.
///
/// `resolution` is the step in which the figures were measured, in their own unit. The interval is
/// never narrower than one step allows. Undefined figures (NaN) are omitted.
///
/// Returns `None` if either side has fewer than [`FEWEST_ROUNDS`] rounds with usable figures.
pub fn change(
    old: Figures<'_>,
    new: Figures<'_>,
    resolution: f64,
    confidence: f64,
) -> Option<Interval> {
    let [old, new] = [old, new].map(|figures| side(figures, resolution));
    let (old, new) = (old?, new?);
    let squares = [old.trimmed.error, new.trimmed.error].map(|error| error * error);
    let square: f64 = squares.iter().sum();
    let own = squares[0].powi(2) / old.freedom + squares[1].powi(2) / new.freedom;
    let freedom = if own > 0.0 {
        square.powi(2) / own
    } else {
        old.freedom + new.freedom
    };
    let confidence = 1.0 - SPENDABLE * (1.0 - confidence);
    let half = half_width(square.sqrt(), freedom, confidence).max(old.floor + new.floor);
    let centre = new.trimmed.centre - old.trimmed.centre;
    Some(Interval {
        estimate: centre.exp(),
        low: (centre - half).exp(),
        high: (centre + half).exp(),
    })
}

fn side(figures: Figures<'_>, resolution: f64) -> Option<Side> {
    let logs = match figures.baseline {
        Some(baseline) => log_ratios(figures.own, baseline, resolution),
        None => logarithms(figures.own, resolution),
    };
    if logs.len() < FEWEST_ROUNDS {
        return None;
    }
    let baseline = figures.baseline.map(|own| half_a_step(own, resolution));
    Some(Side {
        trimmed: trimmed_mean(&logs)?,
        freedom: degrees_of_freedom(logs.len()) as f64,
        floor: half_a_step(figures.own, resolution) + baseline.unwrap_or(0.0),
    })
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha12Rng;

    use super::*;

    #[test]
    fn a_change_by_hand() {
        // Logarithms 1 to 5 and 2 to 6: both errors are sqrt(0.5), so Welch gives 8 degrees of
        // freedom. With half of 5% spent, t = 2.751524, which is also the half-width.
        let series = |first: i32| -> Vec<f64> {
            (first..first + 5).map(|log| f64::from(log).exp()).collect()
        };
        let found = change(
            Figures::alone(&series(1)),
            Figures::alone(&series(2)),
            0.0,
            0.95,
        )
        .expect("five rounds");
        assert!((found.estimate.ln() - 1.0).abs() < 1e-12);
        assert!((found.high.ln() - 1.0 - 2.751_523_596).abs() < 1e-6);
        assert!((found.low.ln() - 1.0 + 2.751_523_596).abs() < 1e-6);
    }

    #[test]
    fn beside_the_baseline_another_machine_makes_no_change() {
        // The second machine is three times as slow, and slower still in its third round.
        let own = [2.0, 2.02, 1.98, 2.01, 1.99];
        let machine = [3.0, 3.0, 4.5, 3.0, 3.0];
        let baseline = [1.0; 5];
        let there: Vec<f64> = own.iter().zip(machine).map(|(a, b)| a * b).collect();
        let old = Figures {
            own: &own,
            baseline: Some(&baseline),
        };
        let new = Figures {
            own: &there,
            baseline: Some(&machine),
        };
        let found = change(old, new, 0.0, 0.95).expect("five rounds");
        assert!((found.estimate - 1.0).abs() < 1e-12);
        assert!(found.high < 1.02, "{found:?}");
        let itself =
            change(Figures::alone(&own), Figures::alone(&there), 0.0, 0.95).expect("five rounds");
        assert!(itself.low > 2.0, "{itself:?}");
    }

    #[test]
    fn no_interval_is_finer_than_a_step_or_than_five_rounds() {
        let pages = [4096.0 * 100.0; 6];
        let found = change(Figures::alone(&pages), Figures::alone(&pages), 4096.0, 0.95)
            .expect("six rounds");
        assert!((found.high.ln() - 0.01).abs() < 1e-12, "{found:?}");
        assert_eq!(
            change(
                Figures::alone(&pages),
                Figures::alone(&pages[..4]),
                0.0,
                0.95
            ),
            None
        );
        let gap = [1.0, 1.0, f64::NAN, 1.0, 1.0];
        assert_eq!(
            change(Figures::alone(&pages), Figures::alone(&gap), 0.0, 0.95),
            None
        );
    }

    /// Draws one normal deviate by the method of Box and Muller.
    fn normal(draw: &mut ChaCha12Rng) -> f64 {
        let (one, two): (f64, f64) = (draw.random(), draw.random());
        (-2.0 * (1.0 - one).ln()).sqrt() * (std::f64::consts::TAU * two).cos()
    }

    /// Returns the share of 4000 pairs of races for which the 95% interval contains the true
    /// change.
    fn coverage(counts: [usize; 2], noise: [f64; 2]) -> f64 {
        let mut draw = ChaCha12Rng::seed_from_u64(17);
        let truth = 1.3_f64;
        let mut series = |count: usize, centre: f64, deviation: f64| -> Vec<f64> {
            let one = |_| centre * (deviation * normal(&mut draw)).exp();
            (0..count).map(one).collect()
        };
        let held = (0..4000).filter(|_| {
            let old = series(counts[0], 1.0, noise[0]);
            let new = series(counts[1], truth, noise[1]);
            let found = change(Figures::alone(&old), Figures::alone(&new), 0.0, 0.95)
                .expect("enough rounds");
            found.low <= truth && truth <= found.high
        });
        held.count() as f64 / 4000.0
    }

    /// The expected coverage is 97.5%, because half of the level is spent. The tolerance covers
    /// three standard errors of 4000 trials (0.7%) and the cost of trimming.
    #[test]
    fn the_interval_covers_as_it_says() {
        for (counts, noise) in [
            ([5, 5], [0.03, 0.03]),
            ([5, 40], [0.10, 0.02]),
            ([10, 10], [0.02, 0.02]),
            ([12, 60], [0.02, 0.10]),
        ] {
            let covered = coverage(counts, noise);
            assert!(
                (0.962..=0.988).contains(&covered),
                "{counts:?} {noise:?}: {covered}"
            );
        }
    }
}
