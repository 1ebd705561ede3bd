//! The ratio of an entrant to the baseline, with an interval that holds however often one looks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use crate::boundary::{Boundary, upper_tail};
use crate::median;
use crate::trimmed::{Trimmed, degrees_of_freedom, trimmed_mean};

/// Complete rounds before which no interval is given.
pub const FEWEST_ROUNDS: usize = 5;

/// The share of the level that is ever spent. The rest pays for Student's t standing in for the
/// normal distribution in small samples; simulations showed that it takes about that much.
const SPENDABLE: f64 = 0.85;

/// Rounds after which half of that share is spent.
const HALF_SPENT: f64 = 20.0;

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
    /// Critical values on Student's scale, by rounds.
    student: BTreeMap<usize, f64>,
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
    /// The standard deviation of one round's log ratio, as the trimmed mean sees it: the standard
    /// error of the estimate times the square root of the rounds.
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
            student: BTreeMap::new(),
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

    /// Compares two series by the ratios within each round.
    ///
    /// `resolution` is the step in which the figures were measured, in their own unit (a page for
    /// memory, a clock tick for times, 1 for counts): a figure below it counts as one step, and the
    /// interval is never narrower than one step allows. With a resolution of zero, figures that are
    /// not positive are left out.
    ///
    /// `None` with fewer than [`FEWEST_ROUNDS`] rounds in which both figures are there.
    pub fn compare(&self, entrant: &[f64], baseline: &[f64], resolution: f64) -> Option<Estimate> {
        // One that ran fewer rounds keeps its estimate, whatever the other one's later rounds show.
        let both = entrant.len().min(baseline.len());
        let (entrant, baseline) = (&entrant[..both], &baseline[..both]);
        let logs = log_ratios(entrant, baseline, resolution);
        let rounds = logs.len();
        if rounds < FEWEST_ROUNDS {
            return None;
        }
        let Trimmed { centre, error } = trimmed_mean(&logs)?;
        let floor = resolution_floor(entrant, baseline, resolution);
        let half = (self.critical(rounds) * error).max(floor);
        Some(Estimate {
            ratio: centre.exp(),
            low: (centre - half).exp(),
            high: (centre + half).exp(),
            rounds,
            deviation: error * (rounds as f64).sqrt(),
            floor,
        })
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

    /// How many standard errors the interval reaches to each side after `rounds` rounds.
    fn critical(&self, rounds: usize) -> f64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { boundary, student } = &mut *state;
        *student.entry(rounds).or_insert_with(|| {
            let tail = upper_tail(boundary.critical(rounds));
            student_quantile(tail, degrees_of_freedom(rounds) as f64)
        })
    }
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

/// A resolution that can be used: zero in place of one that is undefined.
fn step(resolution: f64) -> f64 {
    if resolution.is_finite() {
        resolution.max(0.0)
    } else {
        0.0
    }
}

/// Whether a figure has a logarithm, a figure below one step counting as one step.
fn usable(figure: f64, step: f64) -> bool {
    figure.is_finite() && figure >= 0.0 && figure.max(step) > 0.0
}

/// The logarithms of the ratios of the rounds in which both figures are there.
pub(crate) fn log_ratios(entrant: &[f64], baseline: &[f64], resolution: f64) -> Vec<f64> {
    let step = step(resolution);
    entrant
        .iter()
        .zip(baseline)
        .filter(|(own, other)| usable(**own, step) && usable(**other, step))
        .map(|(own, other)| own.max(step).ln() - other.max(step).ln())
        .collect()
}

/// The logarithms of the figures that are there.
pub(crate) fn logarithms(figures: &[f64], resolution: f64) -> Vec<f64> {
    let step = step(resolution);
    let known = figures.iter().filter(|figure| usable(**figure, step));
    known.map(|figure| figure.max(step).ln()).collect()
}

/// The least half-width on the log scale: both figures may be wrong by half a step.
fn resolution_floor(entrant: &[f64], baseline: &[f64], resolution: f64) -> f64 {
    half_a_step(entrant, resolution) + half_a_step(baseline, resolution)
}

/// Half a step on the log scale, as a share of the typical figure.
pub(crate) fn half_a_step(figures: &[f64], resolution: f64) -> f64 {
    let step = step(resolution);
    let typical = median(figures).unwrap_or(0.0).max(step);
    if typical > 0.0 {
        step / typical / 2.0
    } else {
        0.0
    }
}

#[cfg(test)]
mod decided;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod turns;
