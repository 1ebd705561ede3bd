//! A figure of all entrants of a race, round by round.

use crate::median;

/// A figure of all entrants of a race, round by round.
#[derive(Clone, Debug)]
pub struct Rounds<'a> {
    figures: Vec<&'a [f64]>,
    /// Logarithms of the figures; NaN for a missing figure.
    logs: Vec<Vec<f64>>,
    twin: Option<[usize; 2]>,
    resolution: f64,
}

/// Logarithms of the figures in the rounds that two compared entrants share, in this order: the two
/// entrants, the twin of the second, all others.
#[derive(Clone, Debug)]
pub(crate) struct Cells {
    /// Number of rounds that the two compared entrants share.
    pub(crate) rounds: usize,
    /// Number of leading entrants whose figures are exchangeable if the two compared entrants are
    /// equal.
    pub(crate) alike: usize,
    /// Logarithms, entrant by entrant; zero for a missing figure.
    pub(crate) logs: Vec<f64>,
    /// 1 for a figure that is present, otherwise 0.
    pub(crate) known: Vec<f64>,
    /// Minimum half-width that the resolution allows for an interval, on the log scale.
    pub(crate) floor: f64,
}

impl<'a> Rounds<'a> {
    /// Collects the figures of each entrant in the order of the rounds. NaN stands for a missing
    /// figure. An entrant that left the race has fewer figures.
    ///
    /// `twin` contains the positions of the baseline and its twin, which are the same allocator.
    /// `resolution` is the step in which the figures were measured, in their own unit: a page for
    /// memory, a clock tick for times, 1 for counts. A figure below one step counts as one step,
    /// and no interval is narrower than one step allows. Negative figures are omitted, and with a
    /// resolution of zero also figures of zero.
    pub fn new(
        entrants: impl IntoIterator<Item = &'a [f64]>,
        twin: Option<[usize; 2]>,
        resolution: f64,
    ) -> Self {
        let figures: Vec<&[f64]> = entrants.into_iter().collect();
        let log = |figure: &f64| logarithm(*figure, resolution).unwrap_or(f64::NAN);
        let logs = figures
            .iter()
            .map(|figures| figures.iter().map(log).collect());
        Self {
            logs: logs.collect(),
            figures,
            twin,
            resolution,
        }
    }

    /// Returns the logarithms of all entrants' figures in the rounds that `own` and `other` share.
    pub(crate) fn cells(&self, own: usize, other: usize) -> Cells {
        // Use only the rounds that both ran. Later rounds of other entrants must not change the
        // estimate of an entrant that ran fewer rounds.
        let ran = self.figures[own].len().min(self.figures[other].len());
        let both = |round: &usize| (self.logs[own][*round] + self.logs[other][*round]).is_finite();
        let rounds: Vec<usize> = (0..ran).filter(both).collect();
        let twin = self.twin_of(other).filter(|twin| *twin != own);
        let rest = (0..self.logs.len()).filter(|e| ![own, other].contains(e) && Some(*e) != twin);
        let order = [own, other].into_iter().chain(twin).chain(rest);
        let cells = order.flat_map(|entrant| {
            let logs = &self.logs[entrant];
            rounds
                .iter()
                .map(|round| logs.get(*round).copied().unwrap_or(f64::NAN))
        });
        let split = |log: f64| if log.is_nan() { (0.0, 0.0) } else { (log, 1.0) };
        let (logs, known) = cells.map(split).unzip();
        let [own, other] = [own, other].map(|entrant| &self.figures[entrant][..ran]);
        Cells {
            rounds: rounds.len(),
            alike: 2 + usize::from(twin.is_some()),
            logs,
            known,
            floor: resolution_floor(own, other, self.resolution),
        }
    }

    /// Returns the position of the twin for the baseline, and of the baseline for its twin; `None`
    /// for any other entrant.
    pub(crate) fn twin_of(&self, entrant: usize) -> Option<usize> {
        let [baseline, twin] = self.twin?;
        match entrant {
            entrant if entrant == baseline => Some(twin),
            entrant if entrant == twin => Some(baseline),
            _ => None,
        }
    }
}

impl Cells {
    /// Returns the number of entrants; zero if the two compared entrants share no round.
    pub(crate) fn entrants(&self) -> usize {
        self.logs.len().checked_div(self.rounds).unwrap_or(0)
    }

    /// Returns the logarithms of an entrant's figures, and for each figure 1 if it is present,
    /// otherwise 0.
    pub(crate) fn row(&self, entrant: usize) -> (&[f64], &[f64]) {
        let row = entrant * self.rounds..(entrant + 1) * self.rounds;
        (&self.logs[row.clone()], &self.known[row])
    }

    /// Returns the logarithms of the ratios of the first entrant's figures to those of the second.
    pub(crate) fn ratios(&self) -> Vec<f64> {
        let (own, other) = (self.row(0).0, self.row(1).0);
        own.iter()
            .zip(other)
            .map(|(own, other)| own - other)
            .collect()
    }

    /// Returns whether a log ratio is so close to the measured one that no test would reject it.
    /// This holds if the clipped differences between the first entrant and the mean of the other
    /// exchangeable entrants have a small sum.
    #[cfg(any(test, feature = "benchmark"))]
    pub(crate) fn is_near(&self, log_ratio: f64) -> bool {
        /// Limit of the sum, in standard deviations. At usual levels, critical values are about
        /// twice as large.
        const NEAR: f64 = 1.5;
        let own = self.row(0).0;
        let difference = |round: usize| {
            let alike = (1..self.alike).map(|entrant| self.row(entrant));
            let (sum, count) = alike.fold((0.0, 0.0), |(sum, count), (logs, known)| {
                (sum + logs[round] * known[round], count + known[round])
            });
            own[round] - sum / count - log_ratio
        };
        let mut differences: Vec<f64> = (0..self.rounds).map(difference).collect();
        let mut sizes: Vec<f64> = differences.iter().map(|one| one.abs()).collect();
        let middle = sizes.len() / 2;
        let (_, typical, _) = sizes.select_nth_unstable_by(middle, f64::total_cmp);
        let limit = typical.max(f64::MIN_POSITIVE);
        let clip = |one: &mut f64| *one = (*one / limit).clamp(-1.0, 1.0);
        differences.iter_mut().for_each(clip);
        let squares: f64 = differences.iter().map(|one| one * one).sum();
        differences.iter().sum::<f64>().abs() < NEAR * squares.sqrt()
    }

    /// Returns the smallest tail probability that a randomisation test of the exchangeable entrants
    /// can reach.
    pub(crate) fn least_tail(&self) -> f64 {
        let count = |round: usize| {
            let known = (0..self.alike).map(|entrant| self.known[entrant * self.rounds + round]);
            known.sum::<f64>()
        };
        (0..self.rounds).map(|round| 1.0 / count(round)).product()
    }
}

/// Returns the resolution, or zero if it is negative or not finite.
fn step(resolution: f64) -> f64 {
    if resolution.is_finite() {
        resolution.max(0.0)
    } else {
        0.0
    }
}

/// Returns the logarithm of a figure, after raising a figure below one step to one step. Returns
/// `None` if the figure has no logarithm.
fn logarithm(figure: f64, resolution: f64) -> Option<f64> {
    let known = figure.max(step(resolution));
    (figure.is_finite() && figure >= 0.0 && known > 0.0).then(|| known.ln())
}

/// Returns the logarithms of the ratios in the rounds that have both figures.
pub(crate) fn log_ratios(entrant: &[f64], baseline: &[f64], resolution: f64) -> Vec<f64> {
    let pairs = entrant.iter().zip(baseline);
    let log = |figure: &f64| logarithm(*figure, resolution);
    pairs
        .filter_map(|(own, other)| Some(log(own)? - log(other)?))
        .collect()
}

/// Returns the logarithms of all figures that have a logarithm.
pub(crate) fn logarithms(figures: &[f64], resolution: f64) -> Vec<f64> {
    let logs = figures.iter().map(|figure| logarithm(*figure, resolution));
    logs.flatten().collect()
}

/// Returns the minimum half-width that the resolution allows for the interval of the log ratio. An
/// interval cannot be narrower, because rounding may change each of the two figures by half a step.
fn resolution_floor(entrant: &[f64], baseline: &[f64], resolution: f64) -> f64 {
    half_a_step(entrant, resolution) + half_a_step(baseline, resolution)
}

/// Returns half a step as a share of the typical figure, which approximates half a step on the log
/// scale.
pub(crate) fn half_a_step(figures: &[f64], resolution: f64) -> f64 {
    let step = step(resolution);
    let typical = median(figures).unwrap_or(0.0).max(step);
    if typical > 0.0 {
        step / typical / 2.0
    } else {
        0.0
    }
}
