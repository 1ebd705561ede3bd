//! The exact randomisation test of one entrant beside another, and the interval that follows from
//! it.
//!
//! If two entrants, and the twin of the second, do not differ, each round might as well have given
//! their figures to them in any other order. Huber's model with one common effect for them gives
//! every run a score that does not depend on that order, so the sum of the first one's scores has a
//! known distribution: in each round one of the scores, each with the same probability.

use std::mem;

use statrs::distribution::{ContinuousCDF, Normal};

use crate::huber::{Fit, Groups, Space};
use crate::rounds::Cells;

/// Most entrants that are alike: the two that are compared, and the twin of the second.
const MOST_ALIKE: usize = 3;

/// Scores are rounded to whole steps, which are part of the statistic: the test stays exact. There
/// are about this many steps between 0 and the clip over all rounds together, within the range.
const STEPS_OF_ALL_ROUNDS: usize = 1_000;
const STEPS: [usize; 2] = [5, 50];

/// How often the excess of the first one's variance counts. Rounds that happen to agree hide a part
/// of it; where there is a difference to show, there is no excess.
const WEIGHT_OF_EXCESS: f64 = 4.0;

/// Rounds above which the sum counts as normal: its exact tail would take milliseconds.
const MANY: usize = 300;

/// Deviates below this are far from any critical value, so that the normal distribution serves.
const FAR_INSIDE: f64 = 0.5;

/// How near, in standard deviations, an end of the interval is found, and as a share of the
/// half-width.
const NEAR: f64 = 0.01;
const NARROW: f64 = 0.002;
const MOST_TRIALS: usize = 40;

/// How often the distance of a trial grows before the end counts as out of reach, and by what
/// factors.
const MOST_GROWTHS: usize = 8;
const GROWTH: [f64; 2] = [1.2, 2.0];

/// One comparison under test.
#[derive(Debug)]
pub(crate) struct Randomisation<'a> {
    cells: &'a Cells,
    /// The model of the latest trial, from which the next one starts.
    fit: Fit,
    space: Space,
}

/// The scores of those that are alike in one round, the first one's first.
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
    /// The test before its first trial.
    pub(crate) fn new(cells: &'a Cells) -> Self {
        Self {
            cells,
            fit: cells.start(),
            space: Space::default(),
        }
    }

    /// The estimate of the log ratio, at which the test finds nothing at all, by the model in which
    /// the two differ; and the scale of the noise around it.
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

    /// How far from the estimate the values on one side (1 or -1) are first rejected: the tail of
    /// the test is that of the normal distribution at `critical`. `None` where no value is.
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

    /// The standard normal deviate whose tail is that of the first one's scores if the log ratio is
    /// `shift`; positive where they are too high.
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
        // One that is noisier than those that it is compared with has a wider sum than the test
        // expects.
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

    /// The scores of each round, in whole steps.
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

/// The probability that the drawn scores exceed what is expected by `total` or more, on the side of
/// its sign.
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
    // The most by which the sum of the draws may lie below the greatest one.
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

/// A distance and the excess there.
type Trial = (f64, f64);

/// The greatest distance tried without excess and the least one with, around `guess`; `None` where
/// the excess stays below zero. At no distance it is `-critical`.
fn bracket(guess: f64, critical: f64, excess: &mut impl FnMut(f64) -> f64) -> Option<[Trial; 2]> {
    let mut inside = (0.0, -critical);
    let mut distance = guess;
    for _ in 0..MOST_GROWTHS {
        let found = excess(distance);
        if found >= 0.0 {
            return Some([inside, (distance, found)]);
        }
        inside = (distance, found);
        // Where the excess grew evenly it would end here; it grows more and more slowly.
        let even = critical / (found + critical).max(critical / GROWTH[1]);
        distance *= (GROWTH[0] * even).min(GROWTH[1]);
    }
    None
}

/// Where the excess crosses zero, by false position (the Illinois algorithm).
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
        // An end that stays counts half, so that the other one moves past the crossing.
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
