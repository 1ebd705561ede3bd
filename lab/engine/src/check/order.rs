//! Orders of the entrants by a figure, in a program and in its replay. An order consists of the
//! shown differences between pairs of entrants.

use heapdrome_statistics::{Estimate, Rounds, Rule, Shown, rank_correlation, ranks};

/// Maximum probability that at least one pair's interval misses the true ratio.
const ALPHA: f64 = 0.05;

/// Minimum relative difference that matters. Entrants that differ by less share a rank.
const MARGIN: f64 = 0.02;

/// Returns the side of 1 on which a ratio was shown to lie; `Nothing` if no side was shown, or if
/// the ratio differs from 1 by less than `MARGIN`.
pub(super) fn side(found: &Estimate) -> Shown {
    match found.ratio.ln().abs() >= MARGIN.ln_1p() {
        true => found.shown(),
        false => Shown::Nothing,
    }
}

/// Samples of one figure: for each entrant, one sample for each round.
pub(super) struct Samples(Vec<Vec<f64>>);

impl Samples {
    /// Collects the samples of all entrants; `None` if an entrant has no samples.
    pub(super) fn new(all: impl Iterator<Item = Option<Vec<f64>>>) -> Option<Self> {
        let all: Option<Vec<Vec<f64>>> = all.collect();
        all.map(Self)
    }

    /// Returns the rule for the comparison of all pairs of entrants.
    fn rule(&self) -> Rule {
        let count = self.0.len();
        Rule::new(ALPHA, count * count.saturating_sub(1) / 2)
    }

    fn compare(&self, rule: &Rule, one: usize, other: usize) -> Option<Estimate> {
        let rounds = Rounds::new(self.0.iter().map(Vec::as_slice), None, 0.0);
        rule.compare_within(&rounds, one, other)
    }

    /// Returns every pair of entrants that share enough rounds for an interval, with the ratio of
    /// the first to the second.
    pub(super) fn pairs(&self) -> Vec<([usize; 2], Estimate)> {
        let rule = self.rule();
        let count = self.0.len();
        let pairs = (0..count).flat_map(|one| (one + 1..count).map(move |other| [one, other]));
        let compared = pairs.filter_map(|[one, other]| {
            let found = self.compare(&rule, one, other)?;
            Some(([one, other], found))
        });
        compared.collect()
    }

    pub(super) fn order(&self) -> Order {
        let pairs = self.pairs().into_iter();
        let pairs = pairs.map(|(pair, found)| (pair, found.ratio, side(&found)));
        Order {
            count: self.0.len(),
            pairs: pairs.collect(),
        }
    }
}

/// Order of the entrants by a figure: the ratio of each pair, and the side of 1 on which that ratio
/// was shown to lie. A difference below `MARGIN` counts as no difference.
pub(super) struct Order {
    count: usize,
    pairs: Vec<([usize; 2], f64, Shown)>,
}

impl Order {
    /// Returns the rank of each entrant, from 1 for the smallest figure. Entrants without a shown
    /// difference that matters share a rank.
    pub(super) fn ranks(&self) -> Vec<f64> {
        let is_less = |one: usize, other: usize| {
            self.pairs
                .iter()
                .any(|([first, second], _, shown)| match [*first, *second] {
                    pair if pair == [one, other] => *shown == Shown::Below,
                    pair if pair == [other, one] => *shown == Shown::Above,
                    _ => false,
                })
        };
        ranks(self.count, is_less)
    }

    /// Returns this order of a replay after an adjustment: if the ratios of a pair in the replay
    /// and in the program agree within `limit`, the pair gets the program's side. Without this
    /// rule, the orders would differ whenever a ratio is just below the margin in one order and
    /// just above it in the other.
    pub(super) fn beside(mut self, program: &Self, limit: f64) -> Self {
        for (pair, ratio, shown) in &mut self.pairs {
            let theirs = program.pairs.iter().find(|(other, ..)| other == pair);
            if let Some((_, theirs, side)) = theirs
                && (*ratio / theirs).ln().abs() <= limit.ln_1p()
            {
                *shown = *side;
            }
        }
        self
    }
}

/// Comparison of two orders of the entrants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Orders {
    /// The program shows no order, because no entrants differ by an amount that matters.
    NoOrder,
    /// The program shows an order, but the replay shows none.
    NotReproduced,
    /// The rank correlation of the two orders.
    Correlation(f64),
}

/// Compares the ranks of the entrants in a program with their ranks in its replay.
pub(super) fn orders(program: &[f64], replay: &[f64]) -> Orders {
    let has_order = |ranks: &[f64]| ranks.iter().any(|rank| *rank != ranks[0]);
    match (has_order(program), rank_correlation(program, replay)) {
        (false, _) => Orders::NoOrder,
        (true, None) => Orders::NotReproduced,
        (true, Some(found)) => Orders::Correlation(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(medians: &[f64]) -> Samples {
        let noise = [1.0, 1.001, 0.999, 1.0005, 0.9995, 1.0, 1.0002];
        let of = |median: &f64| noise.iter().map(|noise| median * noise).collect();
        Samples(medians.iter().map(of).collect())
    }

    #[test]
    fn entrants_within_the_margin_share_a_rank() {
        let ranks = |medians: &[f64]| samples(medians).order().ranks();
        assert_eq!(ranks(&[100.0, 101.0, 150.0]), [1.5, 1.5, 3.0]);
        assert_eq!(ranks(&[100.0, 100.5]), [1.5, 1.5]);
        assert_eq!(ranks(&[300.0, 200.0, 100.0]), [3.0, 2.0, 1.0]);
    }

    #[test]
    fn a_ratio_that_the_replay_reproduces_has_the_side_of_the_program() {
        let program = samples(&[100.0, 101.5, 150.0]).order();
        let beside = |medians: &[f64]| samples(medians).order().beside(&program, 0.05).ranks();
        assert_eq!(beside(&[100.0, 103.0, 150.0]), [1.5, 1.5, 3.0]);
        assert_eq!(beside(&[100.0, 110.0, 150.0]), [1.0, 2.0, 3.0]);
        assert_eq!(beside(&[100.0, 100.0, 100.0]), [2.0, 2.0, 2.0]);
    }

    #[test]
    fn without_an_order_of_the_program_there_is_nothing_to_reproduce() {
        let [flat, rising] = [[2.0, 2.0, 2.0], [1.0, 2.0, 3.0]];
        assert_eq!(orders(&flat, &rising), Orders::NoOrder);
        assert_eq!(orders(&rising, &flat), Orders::NotReproduced);
        assert_eq!(orders(&rising, &rising), Orders::Correlation(1.0));
    }

    #[test]
    fn pairs_have_the_ratio_of_the_first_to_the_second() {
        let pairs = samples(&[200.0, 100.0, 400.0]).pairs();
        let ratios: Vec<_> = pairs
            .iter()
            .map(|(pair, found)| (*pair, found.ratio))
            .collect();
        let expected = [([0, 1], 2.0), ([0, 2], 0.5), ([1, 2], 0.25)];
        for ((pair, ratio), (expected, of)) in ratios.into_iter().zip(expected) {
            assert_eq!(pair, expected);
            assert!((ratio - of).abs() < 1e-9, "{ratio}");
        }
    }
}
