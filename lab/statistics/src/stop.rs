//! Decision whether a race may stop.

use crate::Estimate;

/// The user's conditions for stopping, as numbers of rounds and width of the intervals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stopping {
    /// Half-width, as a fraction (0.01 is 1%). The race stops once no interval has a larger
    /// half-width. With `None`, the race runs `max_rounds` rounds.
    pub precision: Option<f64>,
    /// Minimum number of rounds before precision can stop the race.
    pub min_rounds: usize,
    /// Maximum number of rounds.
    pub max_rounds: usize,
}

/// Decision whether to run another round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Another round is needed.
    GoOn,
    /// Every interval is as narrow as requested.
    Precise,
    /// The maximum number of rounds is reached.
    RoundsDone,
}

impl Stopping {
    /// Decides after `rounds` complete rounds. `estimates` has one entry for each comparison still
    /// in the race; `None` for a comparison without an estimate so far.
    ///
    /// If no comparison is left, precision cannot be reached, so only `max_rounds` ends the race.
    pub fn decide(&self, rounds: usize, estimates: &[Option<Estimate>]) -> Decision {
        if rounds >= self.max_rounds {
            return Decision::RoundsDone;
        }
        let Some(precision) = self.precision else {
            return Decision::GoOn;
        };
        let narrow = |estimate: &Option<Estimate>| {
            estimate.is_some_and(|estimate| estimate.half_width() <= precision)
        };
        let done = rounds >= self.min_rounds && !estimates.is_empty();
        if done && estimates.iter().all(narrow) {
            Decision::Precise
        } else {
            Decision::GoOn
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(half_width: f64) -> Option<Estimate> {
        let high = 1.0 + half_width;
        let estimate = Estimate {
            ratio: 1.0,
            low: 1.0 / high,
            high,
            rounds: 9,
            deviation: 0.1,
            floor: 0.0,
        };
        Some(estimate)
    }

    const STOPPING: Stopping = Stopping {
        precision: Some(0.01),
        min_rounds: 8,
        max_rounds: 30,
    };

    #[test]
    fn every_interval_must_be_narrow() {
        let narrow = estimate(0.009);
        assert_eq!(STOPPING.decide(8, &[narrow, narrow]), Decision::Precise);
        assert_eq!(
            STOPPING.decide(8, &[narrow, estimate(0.011)]),
            Decision::GoOn
        );
        assert_eq!(STOPPING.decide(8, &[narrow, None]), Decision::GoOn);
        assert_eq!(STOPPING.decide(7, &[narrow]), Decision::GoOn);
    }

    #[test]
    fn the_rounds_end_every_race() {
        assert_eq!(STOPPING.decide(30, &[None]), Decision::RoundsDone);
        assert_eq!(STOPPING.decide(29, &[]), Decision::GoOn);
        assert_eq!(
            Stopping {
                max_rounds: 0,
                ..STOPPING
            }
            .decide(0, &[]),
            Decision::RoundsDone
        );
        let fixed = Stopping {
            precision: None,
            ..STOPPING
        };
        assert_eq!(fixed.decide(29, &[estimate(0.0)]), Decision::GoOn);
    }

    #[test]
    fn an_undefined_precision_is_never_reached() {
        let stopping = Stopping {
            precision: Some(f64::NAN),
            ..STOPPING
        };
        assert_eq!(stopping.decide(20, &[estimate(0.0)]), Decision::GoOn);
    }
}
