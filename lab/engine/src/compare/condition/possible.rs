//! Refusal of conditions that nothing in two results could confirm. A comparison with such a
//! condition could never fail.

use heapdrome_schema::EntrantResult;
use heapdrome_statistics::FEWEST_ROUNDS;

use super::{ANY, Condition, short_name};
use crate::compare::pairs::{Pair, Pairs};
use crate::race::Kind;

/// Figure that only untimed memory runs measure. By default, each entrant makes one such run, which
/// is too few for an interval.
const OF_MEMORY_RUNS: &str = "peak_tree_bytes";

impl Condition {
    /// Returns the reason why nothing could confirm the condition, with a remedy. Returns `None` if
    /// some ratio could confirm the condition, or if one of the condition's allocators or a whole
    /// race fails in the new result.
    pub(super) fn why_impossible(&self, pairs: &Pairs<'_>, same_machine: bool) -> Option<String> {
        let is_failing = |pair: &Pair<'_>| !self.failing(pair).is_empty();
        if !self.lost(pairs).is_empty() || pairs.pairs.iter().any(is_failing) {
            return None;
        }
        let runs = pairs.pairs.iter();
        let runs = runs.flat_map(|pair| self.runs(pair, same_machine));
        match runs.max_by_key(|[old, new]| *old.min(new)) {
            None => Some(no_factor(same_machine)),
            Some(runs) => self.too_few(runs),
        }
    }

    /// Returns, for each entrant with a factor that could confirm the condition, the number of runs
    /// in the old race and in the new one. Mirrors
    /// [`counting`](crate::compare::changes::counting), which selects the factors of a verdict.
    fn runs(&self, pair: &Pair<'_>, same_machine: bool) -> Vec<[usize; 2]> {
        let counts_alone = same_machine && Kind::of(&self.figure) != Kind::Time;
        let baseline = pair.baseline();
        let compared = pair.compared(same_machine).into_iter();
        let runs = compared.filter_map(|both| {
            let name = both.new.allocator.as_str();
            let rivals = baseline.as_ref();
            let rivals = rivals.filter(|baseline| baseline.new.allocator != name);
            let is_rival = baseline.is_none() || rivals.is_some();
            let is_meant = name == self.allocator || self.allocator == ANY && is_rival;
            let beside = match counts_alone {
                true => None,
                false => Some(rivals?),
            };
            let old = self.of_row(both.old, beside.map(|baseline| baseline.old));
            let new = self.of_row(both.new, beside.map(|baseline| baseline.new));
            is_meant.then_some([old, new])
        });
        runs.collect()
    }

    /// Returns the number of an entrant's runs that have the figure. With a baseline, counts only
    /// rounds in which both have the figure.
    fn of_row(&self, own: &EntrantResult, baseline: Option<&EntrantResult>) -> usize {
        let samples = |row: &EntrantResult| row.samples(&self.figure).unwrap_or_default();
        let beside = baseline.map(samples);
        let is_beside = |round: usize| {
            let beside = beside.as_ref();
            beside.is_none_or(|beside| beside.get(round).is_some_and(|one| one.is_finite()))
        };
        let own = samples(own).into_iter().enumerate();
        own.filter(|(round, sample)| sample.is_finite() && is_beside(*round))
            .count()
    }

    /// Returns a description of the shortage if one of the results has too few runs for an
    /// interval.
    fn too_few(&self, [old, new]: [usize; 2]) -> Option<String> {
        let (runs, which) = if old <= new {
            (old, "old")
        } else {
            (new, "new")
        };
        let option = match self.figure == OF_MEMORY_RUNS {
            true => "--memory-runs",
            false => "--rounds",
        };
        let counted = match runs {
            0 => "no run".to_owned(),
            1 => "1 run".to_owned(),
            many => format!("{many} runs"),
        };
        let figure = short_name(&self.figure);
        (runs < FEWEST_ROUNDS).then(|| {
            format!(
                "{figure} has {counted} in the {which} result, and an interval needs {FEWEST_ROUNDS}; race with \
                 {option} {FEWEST_ROUNDS}"
            )
        })
    }
}

/// Explains why no factor of the condition's allocator counts.
fn no_factor(same_machine: bool) -> String {
    let why = match same_machine {
        true => {
            "a time counts only relative to a baseline that both results have, and the baseline has \
             none"
        }
        false => {
            "between machines only ratios to the baseline count, and the baseline has none to itself"
        }
    };
    format!("{why}; name a rival")
}
