//! One simulated race, judged by the very rule that judges real ones.

use heapdrome_statistics::{
    Decision, Estimate, Figures, Rule, Shown, Stopping, change, typical, welch,
};
use rand_chacha::ChaCha8Rng;

use crate::noise::{Condition, Stream};

/// The times of every entrant: the baseline first, then its twin, then the rivals.
pub type Times = Vec<Vec<f64>>;

/// Entrants before the first rival.
const BASELINE_AND_TWIN: usize = 2;

/// What a race of equals ended with.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Rounds that it took.
    pub rounds: usize,
    /// Whether it stopped because it was precise enough.
    pub precise: bool,
    /// Whether a rival had a false verdict at the end.
    pub at_the_end: bool,
    /// Whether a rival had one at any round, for someone who looks at each and stops at will.
    pub at_any_look: bool,
}

/// Runs one more round in a random order.
pub fn run_round(stream: &mut Stream, times: &mut Times) {
    let order = stream.order(times.len());
    for (position, entrant) in order.into_iter().enumerate() {
        let time = stream.next(position == 0);
        times[entrant].push(time);
    }
}

/// The estimates of all rivals.
fn estimates(rule: &Rule, times: &Times) -> Vec<Option<Estimate>> {
    let rivals = &times[BASELINE_AND_TWIN..];
    rivals
        .iter()
        .map(|rival| rule.compare(rival, &times[0], 0.0))
        .collect()
}

/// Runs a race in which all entrants are equal, with adaptive stopping; returns all times, too.
pub fn race_of_equals(
    condition: &Condition,
    rule: &Rule,
    stopping: &Stopping,
    random: &mut ChaCha8Rng,
) -> (Outcome, Times) {
    let mut stream = condition.stream(random);
    let mut times: Times = vec![Vec::new(); BASELINE_AND_TWIN + rule.comparisons()];
    let mut at_any_look = false;
    for rounds in 1.. {
        run_round(&mut stream, &mut times);
        let estimates = estimates(rule, &times);
        let shown = |estimate: &Estimate| estimate.shown() != Shown::Nothing;
        let at_the_end = estimates.iter().flatten().any(shown);
        at_any_look |= at_the_end;
        let decision = stopping.decide(rounds, &estimates);
        if decision != Decision::GoOn {
            let precise = decision == Decision::Precise;
            let outcome = Outcome {
                rounds,
                precise,
                at_the_end,
                at_any_look,
            };
            return (outcome, times);
        }
    }
    unreachable!("the rounds are bounded by the stopping rule")
}

/// How a comparison of two races in which nothing changed may err.
#[derive(Clone, Copy, Debug)]
pub struct Errs {
    /// A rival compared with itself seems changed.
    pub itself: bool,
    /// A rival's ratio to the baseline does.
    pub beside: bool,
    /// Both say so of the same rival: what a comparison on one machine calls a change.
    pub both: bool,
}

/// Compares two races of equals, the second on a machine that is `slower` by this fraction, as
/// `heapdrome compare` does.
pub fn two_races_err(
    condition: &Condition,
    rule: &Rule,
    stopping: &Stopping,
    slower: f64,
    random: &mut ChaCha8Rng,
) -> Errs {
    let (_, old) = race_of_equals(condition, rule, stopping, random);
    let (_, mut new) = race_of_equals(condition, rule, stopping, random);
    new.iter_mut()
        .flatten()
        .for_each(|time| *time *= 1.0 + slower);
    let confidence = 1.0 - rule.alpha() / rule.comparisons() as f64;
    let changed = |rival: usize, beside: bool| {
        let figures = |times| {
            let times: &Times = times;
            Figures {
                own: &times[rival],
                baseline: beside.then_some(&times[0][..]),
            }
        };
        change(figures(&old), figures(&new), 0.0, confidence).map_or(0, |found| {
            i32::from(found.low > 1.0) - i32::from(found.high < 1.0)
        })
    };
    let rivals = BASELINE_AND_TWIN..old.len();
    let found: Vec<[i32; 2]> = rivals
        .map(|rival| [changed(rival, false), changed(rival, true)])
        .collect();
    Errs {
        itself: found.iter().any(|[itself, _]| *itself != 0),
        beside: found.iter().any(|[_, beside]| *beside != 0),
        both: found.iter().any(|[itself, beside]| itself * beside > 0),
    }
}

/// Whether the usual way errs: all runs of the first, then all of the next, and so on, each compared
/// with the first by Welch's test at `alpha`.
pub fn usual_way_errs(
    condition: &Condition,
    rivals: usize,
    runs: usize,
    alpha: f64,
    random: &mut ChaCha8Rng,
) -> bool {
    let mut stream = condition.stream(random);
    let mut series = || -> Vec<f64> { (0..runs).map(|_| stream.next(false)).collect() };
    let baseline = series();
    let mut wrong = false;
    for _ in 0..rivals {
        wrong |= welch(&series(), &baseline).is_some_and(|test| test.p_value < alpha);
    }
    wrong
}

/// The difference that a race of `rounds` rounds announces as the smallest that it could show, and whether it shows a rival that is slower by just that.
pub fn announced_is_shown(
    condition: &Condition,
    rule: &Rule,
    rounds: usize,
    random: &mut ChaCha8Rng,
) -> Option<(f64, bool)> {
    let mut stream = condition.stream(random);
    let mut times: Times = vec![Vec::new(); BASELINE_AND_TWIN + rule.comparisons()];
    for _ in 0..rounds {
        run_round(&mut stream, &mut times);
    }
    let compare = |entrant: &Vec<f64>| rule.compare(entrant, &times[0], 0.0);
    let estimates: Vec<Estimate> = times[1..].iter().filter_map(compare).collect();
    let announced = rule.smallest_difference(&typical(&estimates)?);
    let slower: Vec<f64> = times[BASELINE_AND_TWIN]
        .iter()
        .map(|time| time * (1.0 + announced))
        .collect();
    let estimate = rule.compare(&slower, &times[0], 0.0)?;
    Some((announced, estimate.shown() == Shown::Above))
}

/// The first round after which a rival that is slower by `difference` is shown to be, within
/// `most` rounds.
pub fn rounds_needed(
    condition: &Condition,
    rule: &Rule,
    difference: f64,
    most: usize,
    random: &mut ChaCha8Rng,
) -> Option<usize> {
    let mut stream = condition.stream(random);
    let mut times: Times = vec![Vec::new(); BASELINE_AND_TWIN + rule.comparisons()];
    let mut slower = Vec::new();
    (1..=most).find(|_| {
        run_round(&mut stream, &mut times);
        slower.extend(
            times[BASELINE_AND_TWIN]
                .last()
                .map(|time| time * (1.0 + difference)),
        );
        let estimate = rule.compare(&slower, &times[0], 0.0);
        estimate.is_some_and(|estimate| estimate.shown() == Shown::Above)
    })
}
