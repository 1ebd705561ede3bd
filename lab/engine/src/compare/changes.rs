//! Factors by which figures changed between two races.

use std::collections::BTreeMap;

use heapdrome_schema::{COMMON_FIGURES, Change, Factor, RacePair, Verdict, resolution};
use heapdrome_statistics::{Figures, Interval, Shown, change, median};

use super::differences::differs;
use super::pairs::{Both, Pair, Pairs, what};
use crate::race::{Kind, factor};

/// Maximum probability of one or more false verdicts on one figure, over all allocators and races.
pub const ALPHA: f64 = 0.05;

/// Number of simultaneous comparisons of each figure. All comparisons of one figure share the
/// probability of error [`ALPHA`].
pub struct Family {
    same_machine: bool,
    comparisons: BTreeMap<String, usize>,
}

impl Family {
    /// Counts the comparisons to be made between these pairs of races.
    pub fn of(pairs: &Pairs<'_>, same_machine: bool) -> Self {
        let mut comparisons = BTreeMap::new();
        for pair in &pairs.pairs {
            for both in pair.compared(same_machine) {
                for figure in figures(pair, &both) {
                    *comparisons.entry(figure).or_insert(0) += 1;
                }
            }
        }
        Self {
            same_machine,
            comparisons,
        }
    }

    /// Compares every figure of the allocators with valid rows in both races. Omits the twin and,
    /// between machines, the baseline.
    pub fn compare(&self, pair: &Pair<'_>) -> RacePair {
        let mut changes = Vec::new();
        for both in pair.compared(self.same_machine) {
            let of = |figure: String| self.change(pair, &both, figure);
            changes.extend(figures(pair, &both).into_iter().filter_map(of));
        }
        let not_compared = pair.not_compared().into_iter();
        RacePair {
            cell: pair.cell.clone(),
            command: what(pair.new),
            baseline: pair.baseline().map(|both| both.new.allocator.clone()),
            old_rounds: pair.old.least_rounds.unwrap_or(pair.old.rounds),
            new_rounds: pair.new.least_rounds.unwrap_or(pair.new.rounds),
            changes,
            differs: differs(pair),
            not_compared: not_compared
                .map(|(name, why)| format!("{name}: {why}"))
                .collect(),
        }
    }

    fn change(&self, pair: &Pair<'_>, both: &Both<'_>, figure: String) -> Option<Change> {
        let comparisons = self.comparisons.get(&figure).copied().unwrap_or(1);
        let confidence = 1.0 - ALPHA / comparisons as f64;
        let [old, new] = samples(pair, both, &figure)?;
        let itself = if self.same_machine {
            let (old, new) = (Figures::alone(&old), Figures::alone(&new));
            change(old, new, resolution(&figure), confidence)
        } else {
            None
        };
        let beside_baseline = beside(pair, both, &figure, confidence);
        let mut change = Change {
            allocator: both.new.allocator.clone(),
            old: median(&old)?,
            new: median(&new)?,
            verdict: None,
            itself: itself.map(factor),
            beside_baseline: beside_baseline.map(factor),
            figure,
        };
        change.verdict = verdict(&change, self.same_machine);
        Some(change)
    }
}

/// Returns the factors that decide the verdict on a change. The verdict is a difference only if all
/// of them show it.
///
/// Between machines, only the ratio to the baseline is meaningful. On one machine the figure itself
/// must show the change, too. A time alone proves nothing, because the machine's speed drifts from
/// race to race. A figure in bytes does not depend on speed, so it alone decides. If a program uses
/// more memory under every allocator, the increase is real.
pub fn counting(change: &Change, same_machine: bool) -> Vec<Factor> {
    let time = Kind::of(&change.figure) == Kind::Time;
    let bytes = change.figure.ends_with("_bytes");
    match (same_machine, change.beside_baseline) {
        (false, beside) => beside.into_iter().collect(),
        (true, None) if time => Vec::new(),
        (true, Some(_)) if bytes => change.itself.into_iter().collect(),
        (true, beside) => change.itself.into_iter().chain(beside).collect(),
    }
}

/// Returns the change of the figure's ratio to the baseline. Returns `None` for the baseline
/// itself, if the races have no common baseline, if a row lacks the figure, or if there are too few
/// rounds.
fn beside(pair: &Pair<'_>, both: &Both<'_>, figure: &str, confidence: f64) -> Option<Interval> {
    let baseline = pair.baseline()?;
    if baseline.new.allocator == both.new.allocator {
        return None;
    }
    let own = samples(pair, both, figure)?;
    let base = samples(pair, &baseline, figure)?;
    let [old, new] = [0, 1].map(|which| Figures {
        own: &own[which],
        baseline: Some(&base[which]),
    });
    change(old, new, resolution(figure), confidence)
}

/// Returns an entrant's samples of a figure from both races; `None` if a race lacks the figure.
/// Only the rounds that every entrant ran are included. The number of later rounds depends on the
/// results, so intervals from those rounds would be invalid.
fn samples(pair: &Pair<'_>, both: &Both<'_>, figure: &str) -> Option<[Vec<f64>; 2]> {
    let old = pair.old.first_rounds(both.old.samples(figure)?);
    let new = pair.new.first_rounds(both.new.samples(figure)?);
    Some([old, new])
}

/// Returns the joint verdict of all factors that count; `None` if no factor counts. The verdict is
/// a difference only if all factors show it in one direction.
fn verdict(change: &Change, same_machine: bool) -> Option<Verdict> {
    let shown = |found: Factor| match (found.low, found.high) {
        (_, high) if high < 1.0 => Shown::Below,
        (low, _) if low > 1.0 => Shown::Above,
        _ => Shown::Nothing,
    };
    let together = |a, b| if a == b { a } else { Shown::Nothing };
    let counting = counting(change, same_machine).into_iter();
    let all = counting.map(shown).reduce(together)?;
    Some(Kind::of(&change.figure).verdict(all))
}

/// Returns the names of the figures that both rows contain. For replays of a trace, omits the
/// figures that their speed does not support.
fn figures(pair: &Pair<'_>, both: &Both<'_>) -> Vec<String> {
    let supported = |figure: &&str| {
        let races = [pair.old, pair.new];
        let mut replays = races.iter().filter_map(|race| race.options.replay.as_ref());
        replays.all(|replay| replay.supports(figure))
    };
    let metrics = both.new.metrics.keys().map(String::as_str);
    let known = COMMON_FIGURES.into_iter().chain(metrics);
    let in_both =
        |figure: &&str| both.old.samples(figure).is_some() && both.new.samples(figure).is_some();
    known
        .filter(supported)
        .filter(in_both)
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(figure: &str, itself: Option<[f64; 2]>, beside: Option<[f64; 2]>) -> Change {
        let factor = |[low, high]: [f64; 2]| Factor {
            ratio: f64::midpoint(low, high),
            low,
            high,
        };
        Change {
            allocator: "a".to_owned(),
            figure: figure.to_owned(),
            old: 1.0,
            new: 1.0,
            itself: itself.map(factor),
            beside_baseline: beside.map(factor),
            verdict: None,
        }
    }

    #[test]
    fn a_verdict_needs_every_factor_that_counts() {
        let slower = Some([1.05, 1.10]);
        let told = |beside| verdict(&change("wall_s", slower, beside), true);
        assert_eq!(told(slower), Some(Verdict::Slower));
        assert_eq!(told(Some([0.98, 1.04])), Some(Verdict::Undecided));
        assert_eq!(told(Some([0.8, 0.9])), Some(Verdict::Undecided));
        let elsewhere = change("wall_s", None, Some([0.8, 0.9]));
        assert_eq!(verdict(&elsewhere, false), Some(Verdict::Faster));
    }

    #[test]
    fn a_time_alone_proves_nothing_and_memory_does() {
        let alone = |figure| verdict(&change(figure, Some([1.05, 1.10]), None), true);
        assert_eq!(alone("wall_s"), None);
        assert_eq!(alone("peak_rss_bytes"), Some(Verdict::More));
        assert_eq!(verdict(&change("wall_s", None, None), true), None);
    }
}
