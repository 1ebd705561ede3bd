//! Finds the rivals that other entrants beat, and the rivals about which the race has decided.
//!
//! All intervals against the baseline are simultaneous at every look, so conclusions from several
//! of them are valid together. A rival whose interval lies wholly below another's has the smaller
//! ratio. This needs no separate test.

use crate::Estimate;

/// Interval of a ratio to the baseline, inverted if necessary so that values below 1 are better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// The interval of the baseline against itself.
const BASELINE: Range = Range {
    low: 1.0,
    high: 1.0,
};

/// Intervals of one rival on all judged figures, in the same order for every rival; `None` for an
/// interval that does not exist yet.
pub type Standing = Vec<Option<Range>>;

/// An entrant that beats a rival on every judged figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leader {
    /// The baseline.
    Baseline,
    /// The rival at this position.
    Rival(usize),
}

impl Range {
    /// Returns the interval of the ratio in `estimate`. If larger values of the figure are better
    /// (`more_is_better`), returns the interval of the inverse ratio, because values below 1 must
    /// always be better.
    pub fn of(estimate: &Estimate, more_is_better: bool) -> Self {
        let Estimate { low, high, .. } = *estimate;
        match more_is_better {
            true => Self {
                low: 1.0 / high,
                high: 1.0 / low,
            },
            false => Self { low, high },
        }
    }

    /// Returns whether the interval decides if the difference from the baseline is relevant: it
    /// excludes 1, or it lies within `margin` of 1 (0.02 is 2%).
    pub fn answers(&self, margin: f64) -> bool {
        let near = self.low >= 1.0 / (1.0 + margin) && self.high <= 1.0 + margin;
        self.high < 1.0 || self.low > 1.0 || near
    }
}

/// Returns whether every judged interval of a rival exists, and excludes 1 or lies within `margin`
/// of 1 (0.02 is 2%).
pub fn is_decided(standing: &Standing, margin: f64) -> bool {
    standing
        .iter()
        .all(|range| range.is_some_and(|range| range.answers(margin)))
}

/// Returns the entrant that beats the rival at `place` on every judged figure: the baseline, or
/// else the first such rival. Returns `None` if no entrant does.
pub fn leader_over(rivals: &[Standing], place: usize) -> Option<Leader> {
    let own = &rivals[place];
    if beats(&vec![Some(BASELINE); own.len()], own) {
        return Some(Leader::Baseline);
    }
    let leads = |other: &usize| *other != place && beats(&rivals[*other], own);
    (0..rivals.len()).find(leads).map(Leader::Rival)
}

/// Returns whether each interval of `one` lies wholly below the interval of `other` for the same
/// figure.
fn beats(one: &Standing, other: &Standing) -> bool {
    let below = |(one, other): (&Option<Range>, &Option<Range>)| match (one, other) {
        (Some(one), Some(other)) => one.high < other.low,
        _ => false,
    };
    !other.is_empty() && one.iter().zip(other).all(below)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(ranges: &[(f64, f64)]) -> Standing {
        let range = |&(low, high): &(f64, f64)| Some(Range { low, high });
        ranges.iter().map(range).collect()
    }

    #[test]
    fn an_interval_answers_if_it_excludes_1_or_stays_near_it() {
        let answers = |low, high| Range { low, high }.answers(0.02);
        assert!(answers(0.5, 0.999) && answers(1.001, 2.0));
        assert!(answers(0.981, 1.02) && answers(1.0, 1.0));
        assert!(!answers(0.97, 1.01) && !answers(0.99, 1.021) && !answers(0.5, 2.0));
        assert!(!answers(f64::NAN, f64::NAN));
    }

    #[test]
    fn a_rival_is_decided_when_all_its_intervals_answer() {
        let both = standing(&[(0.8, 0.9), (0.99, 1.01)]);
        assert!(is_decided(&both, 0.02));
        assert!(!is_decided(&both, 0.005));
        let open = [both.clone(), vec![None]].concat();
        assert!(!is_decided(&open, 0.02));
    }

    #[test]
    fn a_rival_is_beaten_only_on_every_figure_by_the_same_one() {
        let fast = standing(&[(0.5, 0.6), (0.7, 0.8)]);
        let slow = standing(&[(0.9, 1.1), (0.85, 1.2)]);
        let worse = standing(&[(1.1, 1.2), (1.05, 1.3)]);
        let mixed = standing(&[(0.9, 1.1), (0.75, 0.9)]);
        let rivals = [fast, slow, worse, mixed];
        let found: Vec<_> = (0..4).map(|place| leader_over(&rivals, place)).collect();
        let by_the_fast = Some(Leader::Rival(0));
        assert_eq!(found, [None, by_the_fast, Some(Leader::Baseline), None]);
    }

    #[test]
    fn nobody_is_beaten_without_intervals() {
        let rivals = [standing(&[(0.5, 0.6)]), vec![None]];
        assert_eq!(leader_over(&rivals, 1), None);
        assert_eq!(leader_over(&[Vec::new(), Vec::new()], 0), None);
    }

    #[test]
    fn more_of_a_good_figure_is_better() {
        let estimate = Estimate {
            ratio: 1.25,
            low: 1.2,
            high: 1.3,
            rounds: 9,
            deviation: 0.1,
            floor: 0.0,
        };
        let range = Range::of(&estimate, true);
        assert!(range.high < 1.0 && (range.low - 1.0 / 1.3).abs() < 1e-12);
        assert_eq!(Range::of(&estimate, false).low, 1.2);
    }
}
