//! Stopping rule of a race, from the command line.

use heapdrome_schema::{Nanoseconds, Pace, Stopping};

use crate::arguments::StoppingArguments;
use crate::failure::Failure;

/// Default minimum number of rounds before a decision. Fewer rounds give no interval.
const LEAST_ROUNDS: u32 = 5;

/// Default maximum number of rounds.
const MOST_ROUNDS: u32 = 150;

/// Distance of a ratio from 1, as a fraction, below which the difference does not matter.
const MARGIN: f64 = 0.02;

/// Default of `--precision` in sweeps: the half-width that every judged interval must reach, as a
/// fraction.
const PRECISION: f64 = 0.01;

/// Purpose of a race's rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// To decide which allocators are better than the baseline.
    Decide,
    /// To measure how each allocator scales. The intervals must be narrow, so no entrant leaves
    /// early.
    Measure,
}

/// Returns the stopping rule of a race.
///
/// `--rounds` without `--precision` sets the number of rounds. Otherwise, a race with a precision
/// ends once its intervals are narrow enough, and no entrant leaves early. A race without a
/// precision ends once all comparisons are decided, unless `--all-rounds` is set. If no limit is
/// set, the time budget of the [`Pace`] also ends the race.
///
/// # Errors
/// Returns an error if the options contradict each other.
pub fn stopping(asked: &StoppingArguments, quick: bool, aim: Aim) -> Result<Stopping, Failure> {
    check(asked)?;
    let max_rounds = asked.rounds.or(asked.max_rounds).unwrap_or(MOST_ROUNDS);
    let exact = asked.rounds.is_some() && asked.precision.is_none();
    let precision = match aim {
        _ if exact => None,
        Aim::Decide => asked.precision,
        Aim::Measure => asked.precision.or(Some(PRECISION)),
    };
    let by_decision = !exact && precision.is_none();
    let limited = asked.rounds.is_some() || asked.max_rounds.is_some() || asked.max_time.is_some();
    let pace = match precision {
        _ if quick => Pace::Quick,
        Some(_) => Pace::Patient,
        None => Pace::Usual,
    };
    Ok(Stopping {
        precision,
        min_rounds: asked.min_rounds.unwrap_or(max_rounds.min(LEAST_ROUNDS)),
        max_rounds,
        max_time: asked.max_time.map(Nanoseconds::from),
        until_decided: by_decision && !asked.all_rounds,
        margin: by_decision.then_some(MARGIN),
        pace: (!limited).then_some(pace),
    })
}

/// Refuses limits that contradict each other.
fn check(asked: &StoppingArguments) -> Result<(), Failure> {
    let wrong = |why: String| Err(Failure::Usage(why));
    if let (Some(rounds), Some(most)) = (asked.rounds, asked.max_rounds) {
        return wrong(format!(
            "--rounds {rounds} and --max-rounds {most} both limit the rounds; omit one of them"
        ));
    }
    let (name, most) = match (asked.rounds, asked.max_rounds) {
        (Some(rounds), _) => ("--rounds", rounds),
        (_, Some(most)) => ("--max-rounds", most),
        _ => ("the default of --max-rounds,", MOST_ROUNDS),
    };
    match asked.min_rounds {
        Some(least) if least > most => wrong(format!(
            "--min-rounds {least} is more than {name} {most}; lower the one or raise the other"
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Returns the rule for the limits that `change` sets.
    fn read(quick: bool, aim: Aim, change: impl Fn(&mut StoppingArguments)) -> Stopping {
        let mut asked = StoppingArguments::default();
        change(&mut asked);
        stopping(&asked, quick, aim).unwrap_or_else(|error| panic!("{error}"))
    }

    fn race(change: impl Fn(&mut StoppingArguments)) -> Stopping {
        read(false, Aim::Decide, change)
    }

    #[test]
    fn nothing_said_is_a_race_until_all_is_decided() {
        let usual = race(|_| {});
        assert_eq!((usual.precision, usual.margin), (None, Some(0.02)));
        assert_eq!((usual.min_rounds, usual.max_rounds), (5, 150));
        assert_eq!((usual.max_time, usual.pace), (None, Some(Pace::Usual)));
        assert!(usual.until_decided);
        let quick = read(true, Aim::Decide, |_| {});
        assert_eq!((quick.margin, quick.pace), (Some(0.02), Some(Pace::Quick)));
    }

    #[test]
    fn all_rounds_keeps_everyone_until_all_is_decided() {
        let all = race(|asked| asked.all_rounds = true);
        assert_eq!((all.margin, all.until_decided), (Some(0.02), false));
    }

    #[test]
    fn rounds_alone_are_exact_and_with_a_precision_they_are_a_limit() {
        let exact = race(|asked| asked.rounds = Some(7));
        assert_eq!((exact.min_rounds, exact.max_rounds), (5, 7));
        assert_eq!(
            (exact.precision, exact.margin, exact.pace),
            (None, None, None)
        );
        assert!(!exact.until_decided);
        let limit = race(|asked| (asked.rounds, asked.precision) = (Some(7), Some(0.01)));
        assert_eq!((limit.max_rounds, limit.precision), (7, Some(0.01)));
        assert_eq!((limit.margin, limit.until_decided), (None, false));
    }

    #[test]
    fn a_limit_takes_the_place_of_the_pace() {
        let time = Duration::from_secs(300);
        let timed = race(|asked| asked.max_time = Some(time));
        assert_eq!((timed.max_time, timed.pace), (Some(time.into()), None));
        assert_eq!((timed.margin, timed.until_decided), (Some(0.02), true));
        assert_eq!(race(|asked| asked.max_rounds = Some(20)).pace, None);
        let narrow = race(|asked| asked.precision = Some(0.01));
        assert_eq!(narrow.pace, Some(Pace::Patient));
    }

    #[test]
    fn the_races_of_a_sweep_are_precise_and_keep_everyone() {
        let sweep = read(false, Aim::Measure, |_| {});
        assert_eq!((sweep.precision, sweep.margin), (Some(0.01), None));
        assert_eq!(
            (sweep.pace, sweep.until_decided),
            (Some(Pace::Patient), false)
        );
    }

    #[test]
    fn contradictions_are_refused_with_what_to_do() {
        let refused = |change: fn(&mut StoppingArguments)| {
            let mut asked = StoppingArguments::default();
            change(&mut asked);
            let error = stopping(&asked, false, Aim::Decide).expect_err("a contradiction");
            error.to_string()
        };
        let both = refused(|asked| (asked.rounds, asked.max_rounds) = (Some(3), Some(9)));
        assert!(both.ends_with("omit one of them"), "{both}");
        let least = refused(|asked| (asked.min_rounds, asked.rounds) = (Some(4), Some(3)));
        assert!(
            least.contains("--min-rounds 4 is more than --rounds 3;"),
            "{least}"
        );
        let least = refused(|asked| asked.min_rounds = Some(200));
        assert!(
            least.contains("lower the one or raise the other"),
            "{least}"
        );
    }
}
