//! Huber's estimate of an additive model: the logarithm of a figure is the sum of an effect of its
//! entrant, an effect of its round, and noise. Residuals whose size exceeds the scale of the noise
//! are clipped, so that spikes do not distort the effects.

use crate::median;
use crate::rounds::Cells;

/// Absolute residual above which residuals are clipped, in multiples of the noise scale (Huber's
/// k).
const CLIP: f64 = 1.0;

/// Factors that convert the median or the mean of the absolute residuals of normal noise into the
/// noise's standard deviation.
const MEDIAN_TO_DEVIATION: f64 = 1.482_602_218_505_602;
const MEAN_TO_DEVIATION: f64 = 1.253_314_137_315_5;

/// Size below which a residual is only a rounding error of the logarithms.
const NEGLIGIBLE: f64 = 1e-12;

/// Convergence limit of the fit: the largest movement of any effect in one step, as a share of the
/// noise scale.
const TOLERANCE: f64 = 1e-3;
const MOST_STEPS: usize = 50;

/// The fitted effects and the scale of the noise.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fit {
    /// The effect of each entrant. Entrants of one group have the same effect, except that entrant
    /// 0 differs from its group by the group's shift.
    pub(crate) entrants: Vec<f64>,
    /// The effect of each round.
    pub(crate) rounds: Vec<f64>,
    /// Standard deviation of the noise, derived from the median absolute residual. If the median is
    /// zero, it is derived from the mean; zero if nothing varies.
    pub(crate) scale: f64,
}

/// Scratch memory that the fits of one comparison share.
#[derive(Debug, Default)]
pub(crate) struct Space {
    sums: Vec<f64>,
    weights: Vec<f64>,
    residuals: Vec<f64>,
}

impl Cells {
    /// Returns the fit from which the iteration starts. The effect of an entrant is the median of
    /// its logarithms, and the effect of a round is the median of the residuals in the round.
    pub(crate) fn start(&self) -> Fit {
        let known = |entrant: usize, round: usize| {
            let place = entrant * self.rounds + round;
            (self.known[place] > 0.0).then(|| self.logs[place])
        };
        let entrant = |entrant: usize| {
            let logs: Vec<f64> = (0..self.rounds).filter_map(|r| known(entrant, r)).collect();
            median(&logs).unwrap_or(0.0)
        };
        let entrants: Vec<f64> = (0..self.entrants()).map(entrant).collect();
        let round = |round: usize| {
            let logs = entrants.iter().enumerate();
            let logs = logs.filter_map(|(e, effect)| Some(known(e, round)? - effect));
            median(&logs.collect::<Vec<f64>>()).unwrap_or(0.0)
        };
        Fit {
            rounds: (0..self.rounds).map(round).collect(),
            entrants,
            scale: 0.0,
        }
    }

    /// Fits the model with `groups`, starting from `fit`. Each step estimates the scale, and then
    /// reduces the sum of Huber's losses at that scale.
    pub(crate) fn fit(&self, mut fit: Fit, groups: Groups, space: &mut Space) -> Fit {
        groups.join(&mut fit.entrants);
        for _ in 0..MOST_STEPS {
            fit.scale = self.scale(&fit, space);
            if fit.scale == 0.0 {
                break;
            }
            let limit = CLIP * fit.scale;
            let moved = self.move_rounds(&mut fit, limit, space);
            let moved = moved.max(self.move_entrants(&mut fit, limit, groups));
            if moved < TOLERANCE * fit.scale {
                break;
            }
        }
        fit
    }

    /// Returns the clipped residuals of an entrant, divided by the clipping limit, from -1 to 1;
    /// zero in rounds without a figure.
    pub(crate) fn scores<'a>(
        &'a self,
        fit: &'a Fit,
        entrant: usize,
    ) -> impl Iterator<Item = f64> + 'a {
        let (logs, known) = self.row(entrant);
        let limit = (CLIP * fit.scale).max(f64::MIN_POSITIVE);
        let effect = fit.entrants[entrant];
        let cells = logs.iter().zip(known).zip(&fit.rounds);
        cells.map(move |((log, known), round)| {
            known * ((log - effect - round) / limit).clamp(-1.0, 1.0)
        })
    }

    fn scale(&self, fit: &Fit, space: &mut Space) -> f64 {
        let residuals = &mut space.residuals;
        residuals.clear();
        for (entrant, effect) in fit.entrants.iter().enumerate() {
            let (logs, known) = self.row(entrant);
            let cells = logs.iter().zip(known).zip(&fit.rounds);
            let known = cells.filter(|((_, known), _)| **known > 0.0);
            residuals.extend(known.map(|((log, _), round)| (log - effect - round).abs()));
        }
        let middle = residuals.len() / 2;
        let (_, median, _) = residuals.select_nth_unstable_by(middle, f64::total_cmp);
        if *median > NEGLIGIBLE {
            return *median * MEDIAN_TO_DEVIATION;
        }
        let mean = residuals.iter().sum::<f64>() / residuals.len() as f64;
        if mean > NEGLIGIBLE {
            mean * MEAN_TO_DEVIATION
        } else {
            0.0
        }
    }

    /// Adds the weighted means of the residuals to the effects of the rounds. Returns the largest
    /// movement of a round's effect.
    fn move_rounds(&self, fit: &mut Fit, limit: f64, space: &mut Space) -> f64 {
        let (sums, weights) = (&mut space.sums, &mut space.weights);
        sums.clear();
        sums.resize(self.rounds, 0.0);
        weights.clear();
        weights.resize(self.rounds, 0.0);
        for (entrant, effect) in fit.entrants.iter().enumerate() {
            let (logs, known) = self.row(entrant);
            let cells = logs.iter().zip(known).zip(&fit.rounds);
            let into = sums.iter_mut().zip(weights.iter_mut());
            for (((log, known), round), (sum, all)) in cells.zip(into) {
                let residual = log - effect - round;
                let weight = known * (limit / residual.abs().max(limit));
                *sum += weight * residual;
                *all += weight;
            }
        }
        let mut moved = 0.0_f64;
        for ((effect, sum), all) in fit.rounds.iter_mut().zip(sums).zip(weights) {
            let by = *sum / *all;
            *effect += by;
            moved = moved.max(by.abs());
        }
        moved
    }

    /// Updates the effects of the entrants, group by group. Returns the largest movement of an
    /// entrant's effect.
    fn move_entrants(&self, fit: &mut Fit, limit: f64, groups: Groups) -> f64 {
        let mut moved = 0.0_f64;
        let mut first = 0;
        while first < fit.entrants.len() {
            let end = groups.end(first, fit.entrants.len());
            let (mut sum, mut all) = (0.0, 0.0);
            for entrant in first..end {
                let own = self.weighted(fit, entrant, limit);
                sum += own[0];
                all += own[1];
            }
            let by = if all > 0.0 { sum / all } else { 0.0 };
            fit.entrants[first..end]
                .iter_mut()
                .for_each(|effect| *effect += by);
            moved = moved.max(by.abs());
            first = end;
        }
        moved
    }

    /// Returns the sum of an entrant's weighted residuals and the sum of the weights.
    fn weighted(&self, fit: &Fit, entrant: usize, limit: f64) -> [f64; 2] {
        /// Number of partial sums, one for each lane of a vector register.
        const LANES: usize = 4;
        let (logs, known) = self.row(entrant);
        let effect = fit.entrants[entrant];
        let (mut sums, mut all) = ([0.0; LANES], [0.0; LANES]);
        let cells = logs
            .chunks(LANES)
            .zip(known.chunks(LANES))
            .zip(fit.rounds.chunks(LANES));
        for ((logs, known), rounds) in cells {
            for (lane, ((log, known), round)) in logs.iter().zip(known).zip(rounds).enumerate() {
                let residual = log - effect - round;
                let weight = known * (limit / residual.abs().max(limit));
                sums[lane] += weight * residual;
                all[lane] += weight;
            }
        }
        [sums.iter().sum(), all.iter().sum()]
    }
}

/// A group of entrants that share one effect. Every other entrant has its own effect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Groups {
    /// Position of the first entrant of the group.
    pub(crate) first: usize,
    /// Position after the last entrant of the group.
    pub(crate) end: usize,
    /// Difference between the effect of entrant 0 and the effect of its group.
    pub(crate) shift: f64,
}

impl Groups {
    /// Returns the position after the last entrant of the group that begins at `first`. Any other
    /// entrant counts as a group of its own.
    fn end(self, first: usize, entrants: usize) -> usize {
        let end = if first == self.first {
            self.end
        } else {
            first + 1
        };
        end.min(entrants)
    }

    /// Sets the group's effects to the effect of entrant 1, which has a figure in every round. If
    /// entrant 0 belongs to the group, adds the shift to its effect.
    fn join(self, effects: &mut [f64]) {
        let common = effects[1];
        effects[self.first..self.end].fill(common);
        if self.first == 0 {
            effects[0] += self.shift;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rounds;

    /// Returns the figures of four entrants in 15 rounds. The logarithm of a figure is the sum of
    /// an entrant's effect, a round's effect, and noise that repeats every five rounds. `spike` is
    /// added to the logarithm of entrant 2 in round 4. The first two entrants are the baseline and
    /// its twin.
    fn figures(spike: f64) -> Vec<Vec<f64>> {
        let noise = [0.01, -0.02, 0.015, -0.005, 0.0];
        let figure = |entrant: usize, round: usize| {
            let own = [0.0, 0.0, 0.7, -0.4][entrant];
            let noise = noise[(3 * entrant + round) % 5];
            let spike = if (entrant, round) == (2, 4) {
                spike
            } else {
                0.0
            };
            (own + 0.1 * round as f64 + noise + spike).exp()
        };
        (0..4)
            .map(|entrant| (0..15).map(|round| figure(entrant, round)).collect())
            .collect()
    }

    fn fitted(figures: &[Vec<f64>]) -> (Cells, Fit) {
        let rounds = Rounds::new(figures.iter().map(Vec::as_slice), Some([0, 1]), 0.0);
        let cells = rounds.cells(2, 0);
        let groups = Groups {
            first: 1,
            end: cells.alike,
            shift: 0.0,
        };
        let fit = cells.fit(cells.start(), groups, &mut Space::default());
        (cells, fit)
    }

    #[test]
    fn effects_are_found_and_a_spike_bends_none() {
        for spike in [0.0, 5.0] {
            let (cells, fit) = fitted(&figures(spike));
            assert_eq!(cells.entrants(), 4);
            let found: Vec<f64> = fit.entrants.iter().map(|e| e - fit.entrants[1]).collect();
            for (found, truth) in found.iter().zip([0.7, 0.0, 0.0, -0.4]) {
                assert!(
                    (found - truth).abs() < 0.01,
                    "{spike}: {found} is not {truth}"
                );
            }
            let slope = (fit.rounds[14] - fit.rounds[0]) / 14.0;
            assert!((slope - 0.1).abs() < 0.002, "{spike}: {slope}");
            assert!(fit.scale > 0.005 && fit.scale < 0.03, "{}", fit.scale);
        }
    }

    #[test]
    fn at_the_fit_the_scores_of_rounds_and_entrants_add_up_to_nothing() {
        let (cells, fit) = fitted(&figures(5.0));
        let scores: Vec<Vec<f64>> = (0..4).map(|e| cells.scores(&fit, e).collect()).collect();
        let own: f64 = scores[0].iter().sum();
        assert!(own.abs() < 0.05, "{own}");
        for round in 0..15 {
            let sum: f64 = scores.iter().map(|scores| scores[round]).sum();
            assert!(sum.abs() < 0.02, "{round}: {sum}");
        }
        assert_eq!(scores[0][4], 1.0);
    }

    #[test]
    fn what_does_not_vary_has_no_scale_and_no_scores() {
        let (cells, fit) = fitted(&vec![vec![4096.0; 12]; 3]);
        assert_eq!(fit.scale, 0.0);
        assert!(cells.scores(&fit, 0).all(|score| score == 0.0));
    }

    #[test]
    fn figures_that_are_not_there_count_for_nothing() {
        let mut gaps = figures(0.0);
        gaps[1][3] = f64::NAN;
        gaps[3].truncate(7);
        let (cells, fit) = fitted(&gaps);
        assert_eq!(cells.scores(&fit, 2).nth(3), Some(0.0));
        assert!((fit.entrants[0] - fit.entrants[1] - 0.7).abs() < 0.01);
        assert!((fit.entrants[3] - fit.entrants[1] + 0.4).abs() < 0.01);
    }
}
