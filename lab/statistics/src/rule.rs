//! The ratio of an entrant to the baseline, with an interval that holds however often one looks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use crate::boundary::{Boundary, upper_tail};
use crate::median;
use crate::randomisation::Randomisation;
use crate::rounds::{Cells, Rounds};
use crate::trimmed::{Trimmed, degrees_of_freedom, trimmed_mean};

/// Complete rounds before which no interval is given.
pub const FEWEST_ROUNDS: usize = 5;

/// The share of the level that is ever spent. The rest pays for Student's t standing in for the
/// normal distribution in small samples; simulations showed that it takes about that much.
const SPENDABLE: f64 = 0.85;

/// Rounds after which half of that share is spent.
const HALF_SPENT: f64 = 20.0;

/// Rounds before which the randomisation test does not judge, and by what factor its least tail
/// must lie below the one wanted.
const FEWEST_TO_TEST: usize = 10;
const ROOM: f64 = 20.0;

/// Standard deviations that turn an even chance of showing a difference into one of 80%.
const POWER_80: f64 = 0.841_621_233_572_914_3;

/// More rounds than these are not worth telling.
const MOST_MORE_ROUNDS: usize = 1_000;

/// How likely false verdicts may be, and how many comparisons share that probability.
///
/// With probability `1 - alpha` every interval of every comparison at every round holds the true
/// ratio: one may look after each round, stop when one likes, and read the whole table.
/// Cloning is cheap, and clones share the boundary that was computed.
#[derive(Clone, Debug)]
pub struct Rule {
    alpha: f64,
    comparisons: usize,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    boundary: Boundary,
    /// By rounds.
    critical: BTreeMap<usize, Critical>,
}

/// The values that a standardised difference must exceed.
#[derive(Clone, Copy, Debug)]
struct Critical {
    /// On the normal scale.
    normal: f64,
    /// On Student's, with the same tail.
    student: f64,
}

/// An interval on the log scale.
#[derive(Clone, Copy, Debug)]
struct Ends {
    centre: f64,
    low: f64,
    high: f64,
    /// The standard error of the centre.
    error: f64,
}

/// Which side of 1 a ratio was shown to be on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The entrant's figure is less than the baseline's.
    Below,
    /// The entrant's figure is more than the baseline's.
    Above,
    /// Neither was shown.
    Nothing,
}

/// A ratio of entrant to baseline and its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Entrant over baseline; under 1 is less than the baseline.
    pub ratio: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
    /// Complete rounds that it rests on.
    pub rounds: usize,
    /// The standard deviation of one round's log ratio, as the estimate sees it: its standard error
    /// times the square root of the rounds.
    pub deviation: f64,
    /// The least half-width, on the log scale, that the resolution of the figures allows.
    pub floor: f64,
}

impl Estimate {
    /// What the interval shows.
    pub fn shown(&self) -> Shown {
        match (self.low, self.high) {
            (_, high) if high < 1.0 => Shown::Below,
            (low, _) if low > 1.0 => Shown::Above,
            _ => Shown::Nothing,
        }
    }

    /// Half of the interval's width as a fraction of the ratio: 0.01 is "plus or minus 1%".
    pub fn half_width(&self) -> f64 {
        (self.high / self.low).sqrt() - 1.0
    }

    /// The ratio of the baseline to the entrant.
    fn inverted(self) -> Self {
        Self {
            ratio: 1.0 / self.ratio,
            low: 1.0 / self.high,
            high: 1.0 / self.low,
            ..self
        }
    }
}

/// An estimate with the median noise of all that rest on the most rounds: what it says of the noise
/// is surer than what any single one says. A rival that left early could show less than the others,
/// and says nothing of what the race can show at its end. `None` without estimates.
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
    /// A rule with family-wise error `alpha` (held within 1e-6 and 0.5) over `comparisons` (at
    /// least 1), the number of entrants that are compared with the baseline.
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

    /// The probability of one or more false verdicts over all comparisons and all looks.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// The comparisons that share `alpha`.
    pub fn comparisons(&self) -> usize {
        self.comparisons
    }

    /// Compares two series round by round, with nobody beside them; see [`Rule::compare_within`].
    pub fn compare(&self, entrant: &[f64], baseline: &[f64], resolution: f64) -> Option<Estimate> {
        let pair = Rounds::new([entrant, baseline], None, resolution);
        self.compare_within(&pair, 0, 1)
    }

    /// Compares the entrant at place `own` with the one at place `other`, in the rounds that both
    /// have.
    ///
    /// All others say what each round was like. Where one of the two is the baseline or its twin
    /// and the other one is neither, the runs of both baselines count.
    ///
    /// `None` with fewer than [`FEWEST_ROUNDS`] rounds that both have.
    ///
    /// # Panics
    /// When there is no such place.
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

    /// The trimmed mean of the log ratios, with Student's interval.
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

    /// The critical value of the randomisation test; `None` where its tail cannot be small enough.
    fn critical_of_test(&self, cells: &Cells) -> Option<f64> {
        let normal = self.by_rounds(cells.rounds).normal;
        let reached = reaches(cells.rounds, cells.least_tail(), normal);
        reached.then_some(normal)
    }

    /// About how many more rounds would show a difference of `difference` (0.01 is 1%) with a
    /// chance of 80%, if the noise stays as it was; `None` where no reasonable number would.
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

    /// The smallest difference that `rounds` as noisy as those of `estimate` have an 80% chance to
    /// show by their end, as a fraction: 0.01 is 1%.
    ///
    /// The noise floor of a race is best had from the [`typical`] one of all its estimates, the
    /// baseline's twin included.
    pub fn smallest_difference(&self, estimate: &Estimate) -> f64 {
        self.showable(estimate.rounds, estimate).exp_m1()
    }

    /// How many standard errors a single look at very many rounds would take.
    fn fixed_critical(&self) -> f64 {
        let tail = self.alpha / self.comparisons as f64 / 2.0;
        Normal::standard().inverse_cdf(1.0 - tail)
    }

    /// The log ratio that `rounds` rounds have an 80% chance to show.
    ///
    /// The race's own noise is known only from its rounds, and the interval that must show the
    /// ratio varies with it too: both widen the margin above the critical value, the more the fewer
    /// degrees of freedom there are.
    fn showable(&self, rounds: usize, estimate: &Estimate) -> f64 {
        let critical = self.critical(rounds);
        let freedom = degrees_of_freedom(rounds) as f64;
        let unsure = critical.powi(2) + (critical + POWER_80).powi(2);
        let margin = POWER_80 * (1.0 + unsure / (2.0 * freedom)).sqrt();
        let error = estimate.deviation / (rounds as f64).sqrt();
        ((critical + margin) * error).max(estimate.floor)
    }

    /// How many standard errors the interval reaches to each side after `rounds` rounds of a race
    /// whose baseline has a twin.
    fn critical(&self, rounds: usize) -> f64 {
        let Critical { normal, student } = self.by_rounds(rounds);
        let least_tail = 3.0_f64.powi(-i32::try_from(rounds).unwrap_or(i32::MAX));
        match reaches(rounds, least_tail, normal) {
            true => normal,
            false => student,
        }
    }

    /// The critical values after `rounds` rounds.
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

/// The randomisation test's interval. An end that is out of its reach stays Student's.
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

/// Whether the tail of the randomisation test is small enough after `rounds` rounds to reach the
/// critical value `normal`, with room for rounds whose scores are equal.
fn reaches(rounds: usize, least_tail: f64, normal: f64) -> bool {
    rounds >= FEWEST_TO_TEST && least_tail * ROOM <= upper_tail(normal)
}

/// The share of the level that is spent after `rounds` rounds.
fn spent(rounds: usize) -> f64 {
    let rounds = rounds as f64;
    SPENDABLE * rounds / (rounds + HALF_SPENT)
}

/// The value that Student's t with `freedom` degrees exceeds with probability `tail`.
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
