//! The ratio of an entrant to the baseline, with an interval that is valid at every look.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use crate::boundary::{Boundary, upper_tail};
use crate::median;
use crate::randomisation::Randomisation;
use crate::rounds::{Cells, Rounds};
use crate::trimmed::{Trimmed, degrees_of_freedom, trimmed_mean};

/// Minimum number of complete rounds for an interval.
pub const FEWEST_ROUNDS: usize = 5;

/// Share of the level that is ever spent. The rest covers the use of Student's t instead of the
/// normal distribution in small samples. Simulations show that this is enough.
const SPENDABLE: f64 = 0.85;

/// Number of rounds after which half of `SPENDABLE` is spent.
const HALF_SPENT: f64 = 20.0;

/// Minimum number of rounds for the randomisation test. `ROOM` is the minimum ratio of the required
/// tail to the smallest tail that the test can reach.
const FEWEST_TO_TEST: usize = 10;
const ROOM: f64 = 20.0;

/// Distance of a true difference from the critical value, in standard deviations, that raises the
/// probability of showing the difference from 50% to 80%.
const POWER_80: f64 = 0.841_621_233_572_914_3;

/// Maximum number of further rounds that is reported.
const MOST_MORE_ROUNDS: usize = 1_000;

/// The probability of false verdicts, and the number of comparisons that share it.
///
/// With a probability of at least `1 - alpha`, every interval of every comparison at every round
/// contains the true ratio. A user may look after each round, stop at any time, and read the whole
/// table. Cloning is cheap, and clones share the computed boundary.
#[derive(Clone, Debug)]
pub struct Rule {
    alpha: f64,
    comparisons: usize,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    boundary: Boundary,
    /// Critical values by number of rounds.
    critical: BTreeMap<usize, Critical>,
}

/// Critical values of a standardised difference.
#[derive(Clone, Copy, Debug)]
struct Critical {
    /// Critical value of the standard normal distribution.
    normal: f64,
    /// Critical value of Student's t with the same tail probability.
    student: f64,
}

/// An interval on the log scale.
#[derive(Clone, Copy, Debug)]
struct Ends {
    centre: f64,
    low: f64,
    high: f64,
    /// Standard error of the centre.
    error: f64,
}

/// Side of a reference value, usually 1, on which a ratio was shown to lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The ratio is below the reference value.
    Below,
    /// The ratio is above the reference value.
    Above,
    /// No difference was shown.
    Nothing,
}

/// A ratio of entrant to baseline and its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Entrant's figure divided by the baseline's.
    pub ratio: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
    /// Number of complete rounds on which the estimate is based.
    pub rounds: usize,
    /// Standard deviation of one round's log ratio: the standard error of the estimated log ratio,
    /// multiplied by the square root of the number of rounds.
    pub deviation: f64,
    /// Minimum half-width that the resolution of the figures allows, on the log scale.
    pub floor: f64,
}

impl Estimate {
    /// Returns the side of 1 on which the whole interval lies.
    pub fn shown(&self) -> Shown {
        match (self.low, self.high) {
            (_, high) if high < 1.0 => Shown::Below,
            (low, _) if low > 1.0 => Shown::Above,
            _ => Shown::Nothing,
        }
    }

    /// Returns half of the interval's width as a fraction of the ratio; 0.01 is "plus or minus 1%".
    pub fn half_width(&self) -> f64 {
        (self.high / self.low).sqrt() - 1.0
    }

    /// Returns the ratio of the baseline to the entrant.
    fn inverted(self) -> Self {
        Self {
            ratio: 1.0 / self.ratio,
            low: 1.0 / self.high,
            high: 1.0 / self.low,
            ..self
        }
    }
}

/// Returns the estimate with the median noise, among those with the most rounds. For an even number
/// of estimates, the deviation is the mean of the two middle ones. Returns `None` without
/// estimates.
///
/// This median is more reliable than a single estimate of the noise. A rival that left early has
/// fewer rounds, so its estimate does not describe the end of the race.
pub fn typical(estimates: &[Estimate]) -> Option<Estimate> {
    let most = estimates.iter().map(|estimate| estimate.rounds).max()?;
    let mut sorted = estimates.to_vec();
    sorted.retain(|estimate| estimate.rounds == most);
    sorted.sort_unstable_by(|one, other| one.deviation.total_cmp(&other.deviation));
    let deviations: Vec<f64> = sorted.iter().map(|estimate| estimate.deviation).collect();
    let middle = sorted.get(sorted.len() / 2)?;
    Some(Estimate {
        deviation: median(&deviations)?,
        ..*middle
    })
}

impl Rule {
    /// Returns a rule with family-wise error `alpha`, clamped to the range from 1e-6 to 0.5; NaN
    /// counts as 0.05. `comparisons`, at least 1, is the number of comparisons that share this
    /// error.
    pub fn new(alpha: f64, comparisons: usize) -> Self {
        let alpha = if alpha.is_nan() {
            0.05
        } else {
            alpha.clamp(1e-6, 0.5)
        };
        let comparisons = comparisons.max(1);
        let boundary = Boundary::new(alpha / comparisons as f64, FEWEST_ROUNDS, spent);
        let state = Arc::new(Mutex::new(State {
            boundary,
            critical: BTreeMap::new(),
        }));
        Self {
            alpha,
            comparisons,
            state,
        }
    }

    /// Returns the permitted probability of one or more false verdicts over all comparisons and all
    /// looks.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// Returns the number of comparisons that share `alpha`.
    pub fn comparisons(&self) -> usize {
        self.comparisons
    }

    /// Compares two series round by round, without using other entrants. See
    /// [`Rule::compare_within`].
    pub fn compare(&self, entrant: &[f64], baseline: &[f64], resolution: f64) -> Option<Estimate> {
        let pair = Rounds::new([entrant, baseline], None, resolution);
        self.compare_within(&pair, 0, 1)
    }

    /// Compares the entrant at position `own` with the entrant at position `other`, in the rounds
    /// that both ran.
    ///
    /// All other entrants help to estimate the effect of each round. If exactly one of the two is
    /// the baseline or its twin, the runs of both the baseline and its twin are used.
    ///
    /// Returns `None` if the two share fewer than [`FEWEST_ROUNDS`] rounds.
    ///
    /// # Panics
    /// When a position is out of range.
    pub fn compare_within(
        &self,
        rounds: &Rounds<'_>,
        own: usize,
        other: usize,
    ) -> Option<Estimate> {
        let [own_twin, other_twin] = [own, other].map(|entrant| rounds.twin_of(entrant));
        if own_twin.is_some() && other_twin.is_none() {
            let turned = self.compare_within(rounds, other, own);
            return turned.map(Estimate::inverted);
        }
        let cells = rounds.cells(own, other);
        if cells.rounds < FEWEST_ROUNDS {
            return None;
        }
        let student = self.by_student(&cells)?;
        let found = match self.critical_of_test(&cells) {
            Some(critical) => by_randomisation(&cells, critical, student),
            None => student,
        };
        Some(Estimate {
            ratio: found.centre.exp(),
            low: found.low.min(found.centre - cells.floor).exp(),
            high: found.high.max(found.centre + cells.floor).exp(),
            rounds: cells.rounds,
            deviation: found.error * (cells.rounds as f64).sqrt(),
            floor: cells.floor,
        })
    }

    /// Returns the trimmed mean of the log ratios, with Student's interval.
    fn by_student(&self, cells: &Cells) -> Option<Ends> {
        let Trimmed { centre, error } = trimmed_mean(&cells.ratios())?;
        let half = self.by_rounds(cells.rounds).student * error;
        Some(Ends {
            centre,
            low: centre - half,
            high: centre + half,
            error,
        })
    }

    /// Returns the critical value of the randomisation test; `None` if there are too few rounds, or
    /// if its tail cannot become small enough.
    fn critical_of_test(&self, cells: &Cells) -> Option<f64> {
        let normal = self.by_rounds(cells.rounds).normal;
        let reached = reaches(cells.rounds, cells.least_tail(), normal);
        reached.then_some(normal)
    }

    /// Estimates the number of further rounds that would show a difference of `difference` (0.01 is
    /// 1%) with a probability of 80%, if the noise stays the same. Returns `None` if that number is
    /// unreasonably large, or if the difference is within the resolution.
    pub fn rounds_to_show(&self, estimate: &Estimate, difference: f64) -> Option<usize> {
        let wanted = difference.abs().ln_1p();
        let most = estimate.rounds + MOST_MORE_ROUNDS;
        let at_best = (self.fixed_critical() + POWER_80) * estimate.deviation;
        if wanted.is_nan() || estimate.floor >= wanted || at_best > wanted * (most as f64).sqrt() {
            return None;
        }
        let enough = |rounds: &usize| self.showable(*rounds, estimate) <= wanted;
        (estimate.rounds..=most)
            .find(enough)
            .map(|rounds| rounds - estimate.rounds)
    }

    /// Returns the smallest difference, as a fraction, that a race of this length and noise shows
    /// by its end with a probability of 80%; 0.01 is 1%.
    ///
    /// For the noise floor of a race, pass the [`typical`] estimate of all its estimates, including
    /// the twin's.
    pub fn smallest_difference(&self, estimate: &Estimate) -> f64 {
        self.showable(estimate.rounds, estimate).exp_m1()
    }

    /// Returns the critical value, in standard errors, of a single look after very many rounds.
    fn fixed_critical(&self) -> f64 {
        let tail = self.alpha / self.comparisons as f64 / 2.0;
        Normal::standard().inverse_cdf(1.0 - tail)
    }

    /// Returns the log ratio that `rounds` rounds show with a probability of 80%.
    ///
    /// The noise is estimated from the race's own rounds, and the width of the interval varies with
    /// this estimate. The error of the estimate therefore increases the required distance from the
    /// critical value, more so with fewer degrees of freedom.
    fn showable(&self, rounds: usize, estimate: &Estimate) -> f64 {
        let critical = self.critical(rounds);
        let freedom = degrees_of_freedom(rounds) as f64;
        let unsure = critical.powi(2) + (critical + POWER_80).powi(2);
        let margin = POWER_80 * (1.0 + unsure / (2.0 * freedom)).sqrt();
        let error = estimate.deviation / (rounds as f64).sqrt();
        ((critical + margin) * error).max(estimate.floor)
    }

    /// Returns the half-width of the interval, in standard errors, after `rounds` rounds of a race
    /// whose baseline has a twin.
    fn critical(&self, rounds: usize) -> f64 {
        let Critical { normal, student } = self.by_rounds(rounds);
        let least_tail = 3.0_f64.powi(-i32::try_from(rounds).unwrap_or(i32::MAX));
        match reaches(rounds, least_tail, normal) {
            true => normal,
            false => student,
        }
    }

    /// Returns the critical values after `rounds` rounds.
    fn by_rounds(&self, rounds: usize) -> Critical {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { boundary, critical } = &mut *state;
        *critical.entry(rounds).or_insert_with(|| {
            let normal = boundary.critical(rounds);
            let freedom = degrees_of_freedom(rounds) as f64;
            Critical {
                normal,
                student: student_quantile(upper_tail(normal), freedom),
            }
        })
    }
}

/// Returns the interval of the randomisation test. Replaces an end that the test cannot reach with
/// the end of Student's interval.
fn by_randomisation(cells: &Cells, critical: f64, student: Ends) -> Ends {
    let mut test = Randomisation::new(cells);
    let estimate = test.estimate();
    let centre = estimate[0];
    let below = test.distance(estimate, -1.0, critical);
    let above = test.distance(estimate, 1.0, critical);
    let low = below.map_or(student.low.min(centre), |distance| centre - distance);
    let high = above.map_or(student.high.max(centre), |distance| centre + distance);
    Ends {
        centre,
        low,
        high,
        error: (high - low) / (2.0 * critical),
    }
}

/// Returns whether the tail of the randomisation test can become small enough after `rounds` rounds
/// to reach the critical value `normal`, with a margin for rounds with equal scores.
fn reaches(rounds: usize, least_tail: f64, normal: f64) -> bool {
    rounds >= FEWEST_TO_TEST && least_tail * ROOM <= upper_tail(normal)
}

/// Returns the share of the level that is spent after `rounds` rounds.
fn spent(rounds: usize) -> f64 {
    let rounds = rounds as f64;
    SPENDABLE * rounds / (rounds + HALF_SPENT)
}

/// Returns the value that Student's t with `freedom` degrees of freedom exceeds with probability
/// `tail`.
fn student_quantile(tail: f64, freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::INFINITY, |student| -student.inverse_cdf(tail))
}

#[cfg(test)]
mod decided;
#[cfg(any(test, feature = "benchmark"))]
mod simulated;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod turns;
#[cfg(test)]
mod within;
