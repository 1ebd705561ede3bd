//! The exact randomisation test of one entrant against another, and the interval derived from it.
//!
//! If two entrants (and the twin of the second) do not differ, their figures within a round are
//! exchangeable. Huber's model, with one common effect for them, gives every run a score that does
//! not depend on which of them has which figure. The sum of the first entrant's scores therefore
//! has a known distribution: each round contributes the score of one of these entrants, each with
//! the same probability.

use std::mem;

use statrs::distribution::{ContinuousCDF, Normal};

use crate::huber::{Fit, Groups, Space};
use crate::rounds::Cells;

/// Maximum number of exchangeable entrants: the two that are compared, and the second one's twin.
const MOST_ALIKE: usize = 3;

/// Total number of steps, over all rounds, between a score of 0 and the clipping limit. `STEPS`
/// contains the minimum and the maximum number of steps in one round. Rounding to steps precedes
/// the test, so the test stays exact.
const STEPS_OF_ALL_ROUNDS: usize = 1_000;
const STEPS: [usize; 2] = [5, 50];

/// Weight of the first entrant's excess variance. The weight is above 1 because a few rounds that
/// agree by chance hide a part of the excess. A large weight costs no power, because a clear
/// difference leaves no excess.
const WEIGHT_OF_EXCESS: f64 = 4.0;

/// Number of rounds above which the sum is treated as normal, because computing its exact tail
/// would take milliseconds.
const MANY: usize = 300;

/// Absolute deviate below which the normal distribution is accurate enough, because no critical
/// value is near.
const FAR_INSIDE: f64 = 0.5;

/// Accuracy of an end of the interval: `NEAR` is in standard deviations, `NARROW` a share of the
/// half-width.
const NEAR: f64 = 0.01;
const NARROW: f64 = 0.002;
const MOST_TRIALS: usize = 40;

/// Maximum number of trial distances before an end counts as unreachable. `GROWTH` contains the
/// smallest and the largest factor from one distance to the next.
const MOST_GROWTHS: usize = 8;
const GROWTH: [f64; 2] = [1.2, 2.0];

/// The randomisation test of one comparison.
#[derive(Debug)]
pub(crate) struct Randomisation<'a> {
    cells: &'a Cells,
    /// The model of the latest trial. The next trial starts from it.
    fit: Fit,
    space: Space,
}

/// The scores of the exchangeable entrants in one round. The first score belongs to the first
/// entrant.
#[derive(Clone, Copy, Debug)]
struct Draw {
    scores: [i32; MOST_ALIKE],
    count: usize,
}

impl Draw {
    fn scores(&self) -> &[i32] {
        &self.scores[..self.count]
    }

    fn mean(&self) -> f64 {
        f64::from(self.scores().iter().sum::<i32>()) / self.count as f64
    }
}

impl<'a> Randomisation<'a> {
    /// Returns the test in its initial state.
    pub(crate) fn new(cells: &'a Cells) -> Self {
        Self {
            cells,
            fit: cells.start(),
            space: Space::default(),
        }
    }

    /// Returns the estimate of the log ratio and the scale of the noise, from the model in which
    /// the two entrants differ. At this estimate, the test finds no difference.
    pub(crate) fn estimate(&mut self) -> [f64; 2] {
        let differing = Groups {
            first: 1,
            end: self.cells.alike,
            shift: 0.0,
        };
        let fit = mem::take(&mut self.fit);
        self.fit = self.cells.fit(fit, differing, &mut self.space);
        let effects = &self.fit.entrants;
        [effects[0] - effects[1], self.fit.scale]
    }

    /// Returns the distance from the estimate to the first rejected value in one direction (1 or
    /// -1). There, the tail of the test equals that of the normal distribution at `critical`.
    /// Returns zero if there is no noise, and `None` if the trials find no rejected value.
    pub(crate) fn distance(
        &mut self,
        [centre, noise]: [f64; 2],
        side: f64,
        critical: f64,
    ) -> Option<f64> {
        let cells = self.cells;
        if noise == 0.0 {
            return Some(0.0);
        }
        let mut excess = |distance: f64| {
            let shift = centre + side * distance;
            -side * self.deviate(shift) - critical
        };
        let guess = critical * noise * (2.0 / cells.rounds as f64).sqrt();
        let bracket = bracket(guess, critical, &mut excess)?;
        Some(crossing(bracket, excess))
    }

    /// Returns the standard normal deviate whose tail equals the tail of the sum of the first
    /// entrant's scores, if the log ratio is `shift`. The deviate is positive if the scores are too
    /// high.
    pub(crate) fn deviate(&mut self, shift: f64) -> f64 {
        let alike = Groups {
            first: 0,
            end: self.cells.alike,
            shift,
        };
        let fit = mem::take(&mut self.fit);
        self.fit = self.cells.fit(fit, alike, &mut self.space);
        let draws = self.draws();
        let (mut total, mut squares, mut variance) = (0.0, 0.0, 0.0);
        for draw in &draws {
            let mean = draw.mean();
            let off = |score: &i32| f64::from(*score) - mean;
            let own = off(&draw.scores[0]);
            total += own;
            squares += own * own;
            variance +=
                draw.scores().iter().map(|s| off(s).powi(2)).sum::<f64>() / draw.count as f64;
        }
        if variance == 0.0 {
            return 0.0;
        }
        // If an entrant is noisier than the others, its sum varies more than the test expects.
        let rounds = draws.len() as f64;
        let own = (squares - total * total / rounds) / (rounds - 1.0) * rounds;
        let excess = (own / variance - 1.0).max(0.0);
        let total = total / (1.0 + WEIGHT_OF_EXCESS * excess).sqrt();
        let normal = total / variance.sqrt();
        if normal.abs() < FAR_INSIDE || draws.len() > MANY {
            return normal;
        }
        let tail = tail(&draws, total);
        -normal.signum() * Normal::standard().inverse_cdf(tail)
    }

    /// Returns the scores of each round, in whole steps.
    fn draws(&self) -> Vec<Draw> {
        let rounds = self.cells.rounds;
        let steps = (STEPS_OF_ALL_ROUNDS / rounds).clamp(STEPS[0], STEPS[1]) as f64;
        let nothing = Draw {
            scores: [0; MOST_ALIKE],
            count: 0,
        };
        let mut draws = vec![nothing; rounds];
        for entrant in 0..self.cells.alike {
            let scores = self.cells.scores(&self.fit, entrant);
            for ((draw, score), known) in
                draws.iter_mut().zip(scores).zip(self.cells.row(entrant).1)
            {
                if *known > 0.0 {
                    draw.scores[draw.count] = (score * steps).round() as i32;
                    draw.count += 1;
                }
            }
        }
        draws
    }
}

/// Returns the probability that the sum of one random score per round deviates from its expected
/// value by at least `total`, in the direction of the sign of `total`.
fn tail(draws: &[Draw], total: f64) -> f64 {
    let side = if total < 0.0 { -1 } else { 1 };
    let greatest = |draw: &Draw| {
        draw.scores()
            .iter()
            .map(|score| side * score)
            .max()
            .unwrap_or(0)
    };
    let most: i32 = draws.iter().map(greatest).sum();
    let expected: f64 = draws.iter().map(Draw::mean).sum();
    let least = (f64::from(side) * expected + total.abs() - 1e-6).ceil();
    if least > f64::from(most) {
        return 0.0;
    }
    // Maximum distance below the greatest sum at which a sum of draws still counts.
    let room = (f64::from(most) - least) as usize;
    let mut now = vec![0.0; room + 1];
    let mut next = now.clone();
    now[0] = 1.0;
    let mut reach = 0;
    for draw in draws {
        let greatest = greatest(draw);
        let short = |score: &i32| (greatest - side * score) as usize;
        let shares = 1.0 / draw.count as f64;
        let further = draw.scores().iter().map(short).max().unwrap_or(0);
        let reached = (reach + further).min(room);
        next[..=reached].fill(0.0);
        for short in draw
            .scores()
            .iter()
            .map(short)
            .filter(|short| *short <= room)
        {
            let end = (reach + short).min(room);
            for (sum, mass) in next[short..=end].iter_mut().zip(&now) {
                *sum += shares * mass;
            }
        }
        reach = reached;
        mem::swap(&mut now, &mut next);
    }
    now[..=reach].iter().sum()
}

/// A distance from the estimate, and the excess of the test's deviate over the critical value
/// there.
type Trial = (f64, f64);

/// Finds the greatest trial distance without excess and the smallest trial distance with excess,
/// starting from `guess`. Returns `None` if no trial's excess reaches zero. At distance zero the
/// excess is `-critical`.
fn bracket(guess: f64, critical: f64, excess: &mut impl FnMut(f64) -> f64) -> Option<[Trial; 2]> {
    let mut inside = (0.0, -critical);
    let mut distance = guess;
    for _ in 0..MOST_GROWTHS {
        let found = excess(distance);
        if found >= 0.0 {
            return Some([inside, (distance, found)]);
        }
        inside = (distance, found);
        // At this factor, a linear excess would be zero. The actual excess grows more slowly.
        let even = critical / (found + critical).max(critical / GROWTH[1]);
        distance *= (GROWTH[0] * even).min(GROWTH[1]);
    }
    None
}

/// Finds the zero of the excess by false position (the Illinois algorithm).
fn crossing([mut inside, mut outside]: [Trial; 2], mut excess: impl FnMut(f64) -> f64) -> f64 {
    let mut last_was_outside = None;
    for _ in 0..MOST_TRIALS {
        let width = outside.0 - inside.0;
        if width < NARROW * outside.0 {
            break;
        }
        let share = (inside.1 / (inside.1 - outside.1)).clamp(0.05, 0.95);
        let distance = inside.0 + share * width;
        let found = excess(distance);
        if found.abs() < NEAR {
            return distance;
        }
        let is_outside = found > 0.0;
        if is_outside {
            outside = (distance, found);
        } else {
            inside = (distance, found);
        }
        // If the same end has moved twice in a row, halve the value at the other end. The next
        // trial is then closer to that other end, so that it moves, too.
        if last_was_outside == Some(is_outside) {
            if is_outside {
                inside.1 /= 2.0;
            } else {
                outside.1 /= 2.0;
            }
        }
        last_was_outside = Some(is_outside);
    }
    outside.0
}

#[cfg(test)]
mod tests;
