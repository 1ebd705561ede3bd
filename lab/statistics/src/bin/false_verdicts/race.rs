//! Simulated races, judged by the rule for real races.

use heapdrome_statistics::{
    Decision, Estimate, FEWEST_ROUNDS, Figures, Rounds, Rule, Shown, Stopping, change, typical,
    welch,
};
use rand_chacha::ChaCha8Rng;

use crate::noise::{Condition, Kind, Stream};

/// The times of every entrant: the baseline first, then its twin, then the rivals.
pub type Times = Vec<Vec<f64>>;

/// Number of entrants that precede the first rival.
pub const BASELINE_AND_TWIN: usize = 2;

/// Factor by which the rivals that leave the race are slower.
const SLOWER: f64 = 1.1;

/// Significance level of Welch's test.
const USUAL_LEVEL: f64 = 0.05;

/// A simulated race in progress.
pub struct Simulated<'a> {
    condition: &'a Condition,
    stream: Stream<'a>,
    /// Times of every entrant so far.
    pub times: Times,
    racing: Vec<bool>,
}

impl<'a> Simulated<'a> {
    /// Returns a race with this number of rivals, before its first round.
    pub fn new(condition: &'a Condition, rivals: usize, random: &'a mut ChaCha8Rng) -> Self {
        let entrants = BASELINE_AND_TWIN + rivals;
        Self {
            condition,
            stream: condition.stream(random),
            times: vec![Vec::new(); entrants],
            racing: vec![true; entrants],
        }
    }

    /// Returns the positions of the rivals that are as fast as the baseline.
    pub fn equals(&self) -> std::ops::Range<usize> {
        let rivals = self.times.len() - BASELINE_AND_TWIN;
        let equal = if self.condition.leaving {
            rivals.div_ceil(2)
        } else {
            rivals
        };
        BASELINE_AND_TWIN..BASELINE_AND_TWIN + equal
    }

    /// Runs one more round in a random order.
    pub fn run_round(&mut self) {
        let slower = self.equals().end..self.times.len();
        let order = self.stream.order(self.times.len());
        let racing = order.into_iter().filter(|entrant| self.racing[*entrant]);
        for (position, entrant) in racing.enumerate() {
            let time = self.stream.next(Kind {
                first: position == 0,
                first_rival: entrant == BASELINE_AND_TWIN,
            });
            let ratio = if slower.contains(&entrant) {
                SLOWER
            } else {
                1.0
            };
            self.times[entrant].push(time * ratio);
        }
    }

    /// Removes each slower rival from the race once the rule shows that it is slower.
    pub fn leave(&mut self, rule: &Rule) {
        for entrant in self.equals().end..self.times.len() {
            let shown = || shown(rule, &figures(&self.times), entrant)[0];
            self.racing[entrant] = self.racing[entrant] && shown() != Shown::Above;
        }
    }
}

/// Returns the times in the form that the rule requires.
fn figures(times: &Times) -> Rounds<'_> {
    Rounds::new(times.iter().map(Vec::as_slice), Some([0, 1]), 0.0)
}

/// Returns the verdicts on an entrant against the baseline: by the rule, and by Student's interval
/// alone.
fn shown(rule: &Rule, look: &Rounds<'_>, entrant: usize) -> [Shown; 2] {
    rule.leaves_out(look, [entrant, 0], 1.0, 1.0)
}

/// Errors in the verdicts of one race on the twin and on the rivals that are as fast as the
/// baseline.
#[derive(Clone, Copy, Debug, Default)]
pub struct Errors {
    /// Whether a rival had a false verdict after the last round.
    pub at_the_end: bool,
    /// Whether a rival had a false verdict after any round.
    pub at_any_look: bool,
    /// Whether the twin had a false verdict after any round.
    pub twin: bool,
    /// Whether Student's interval alone gave a rival a false verdict after any round.
    pub student: bool,
    /// Whether Welch's test of these runs, applied only at the end, finds a difference between a
    /// rival and the baseline.
    pub welch: bool,
    /// Whether Welch's test finds such a difference if all runs of one entrant precede those of the
    /// next.
    pub in_sequence: bool,
}

/// Mean estimate for the first rival after the last round. The intervals for this rival should
/// contain it.
pub struct Truth {
    /// Mean estimate by the rule.
    pub by_rule: f64,
    /// Mean estimate by Student's interval alone.
    pub by_student: f64,
}

impl Truth {
    /// The true ratio of equal entrants, which is 1.
    pub const EQUAL: Self = Self {
        by_rule: 1.0,
        by_student: 1.0,
    };

    /// Simulates races. Returns the geometric means of their estimates for the first rival, by the
    /// rule and by Student's interval alone.
    pub fn simulated(
        condition: &Condition,
        rule: &Rule,
        rounds: usize,
        random: &mut ChaCha8Rng,
    ) -> Self {
        /// Number of simulated races.
        const RACES: usize = 4_000;
        let mut sums = [0.0; 2];
        for _ in 0..RACES {
            let mut race = Simulated::new(condition, rule.comparisons(), random);
            (0..rounds).for_each(|_| race.run_round());
            let found = rule.centres(&figures(&race.times), BASELINE_AND_TWIN, 0);
            for (sum, centre) in sums.iter_mut().zip(found.unwrap_or_default()) {
                *sum += centre;
            }
        }
        let [by_rule, by_student] = sums.map(|sum| (sum / RACES as f64).exp());
        Self {
            by_rule,
            by_student,
        }
    }
}

/// Runs a race of `rounds` rounds. After every round from [`FEWEST_ROUNDS`] on, judges the twin and
/// the rivals that are as fast as the baseline. `truth` is the true ratio of the first rival.
pub fn errors(
    condition: &Condition,
    rule: &Rule,
    rounds: usize,
    truth: &Truth,
    random: &mut ChaCha8Rng,
) -> Errors {
    let mut found = Errors::default();
    let mut race = Simulated::new(condition, rule.comparisons(), random);
    for round in FEWEST_ROUNDS..=rounds {
        while race.times[0].len() < round {
            race.run_round();
        }
        let look = figures(&race.times);
        let mut wrong = [false; 2];
        for entrant in race.equals() {
            let truth = match entrant {
                BASELINE_AND_TWIN => truth,
                _ => &Truth::EQUAL,
            };
            let pair = [entrant, 0];
            let shown = rule.leaves_out(&look, pair, truth.by_rule, truth.by_student);
            wrong = [0, 1].map(|by| wrong[by] || shown[by] != Shown::Nothing);
        }
        found.at_the_end = wrong[0];
        found.at_any_look |= wrong[0];
        found.student |= wrong[1];
        found.twin = found.twin || shown(rule, &look, 1)[0] != Shown::Nothing;
        race.leave(rule);
    }
    let differs = |one: &[f64], other: &[f64]| {
        welch(one, other).is_some_and(|test| test.p_value < USUAL_LEVEL)
    };
    let times = &race.times;
    found.welch = race.equals().any(|rival| differs(&times[rival], &times[0]));
    let equals = race.equals().len();
    drop(race);
    let in_sequence = in_sequence(condition, equals, rounds, random);
    let mut rivals = in_sequence[1..].iter();
    found.in_sequence = rivals.any(|rival| differs(rival, &in_sequence[0]));
    found
}

/// Simulates all runs of the baseline, then all runs of the first rival, and so on.
fn in_sequence(
    condition: &Condition,
    rivals: usize,
    runs: usize,
    random: &mut ChaCha8Rng,
) -> Times {
    let mut stream = condition.stream(random);
    let mut series = |entrant: usize| -> Vec<f64> {
        let run = Kind {
            first: false,
            first_rival: entrant == 1,
        };
        (0..runs).map(|_| stream.next(run)).collect()
    };
    (0..=rivals).map(&mut series).collect()
}

/// Runs a race until `stopping` ends it for every rival that is as fast as the baseline.
fn until_precise(
    condition: &Condition,
    rule: &Rule,
    stopping: &Stopping,
    random: &mut ChaCha8Rng,
) -> Times {
    let mut race = Simulated::new(condition, rule.comparisons(), random);
    for rounds in 1.. {
        race.run_round();
        let look = figures(&race.times);
        // Check only until the first interval that is too wide.
        let narrow = race.equals().all(|entrant| {
            let estimate = rule.compare_within(&look, entrant, 0);
            stopping.decide(rounds, &[estimate]) != Decision::GoOn
        });
        if narrow {
            break;
        }
    }
    race.times
}

/// Changes that a comparison of two races shows although no entrant has changed.
#[derive(Clone, Copy, Debug)]
pub struct Errs {
    /// Whether the comparison shows a change of a rival's own time.
    pub itself: bool,
    /// Whether the comparison shows a change of a rival's ratio to the baseline.
    pub beside: bool,
    /// Whether the comparison shows, for one rival, changes of its own time and of its ratio to the
    /// baseline in the same direction. On one machine, `compare` calls this a change.
    pub both: bool,
}

/// Compares two races of the same entrants as `heapdrome compare` does. In the second race the
/// machine is slower by the fraction `slower`.
pub fn two_races_err(
    condition: &Condition,
    rule: &Rule,
    stopping: &Stopping,
    slower: f64,
    random: &mut ChaCha8Rng,
) -> Errs {
    let old = until_precise(condition, rule, stopping, random);
    let mut new = until_precise(condition, rule, stopping, random);
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

/// Verdicts of the tests on a rival that is slower by exactly the difference that its race
/// announces.
#[derive(Clone, Copy, Debug)]
pub struct Shows {
    /// The announced difference, as a fraction.
    pub announced: f64,
    /// Whether the rule shows the difference.
    pub rule: bool,
    /// Whether Student's interval alone shows the difference.
    pub student: bool,
    /// Whether Welch's test of these runs shows the difference.
    pub welch: bool,
    /// Whether Welch's test shows the difference if all runs of one entrant precede those of the
    /// next.
    pub in_sequence: bool,
}

/// Runs a race of `rounds` rounds, and slows the first rival by the smallest difference that the
/// race announces. Returns the tests that show this difference; `None` if the race has too few
/// rounds for an estimate.
pub fn announced_is_shown(
    condition: &Condition,
    rule: &Rule,
    rounds: usize,
    random: &mut ChaCha8Rng,
) -> Option<Shows> {
    let mut race = Simulated::new(condition, rule.comparisons(), random);
    (0..rounds).for_each(|_| race.run_round());
    let mut times = race.times;
    let look = figures(&times);
    let compare = |entrant| rule.compare_within(&look, entrant, 0);
    let estimates: Vec<Estimate> = (1..times.len()).filter_map(compare).collect();
    let announced = rule.smallest_difference(&typical(&estimates)?);
    times[BASELINE_AND_TWIN]
        .iter_mut()
        .for_each(|time| *time *= 1.0 + announced);
    let look = figures(&times);
    let [by_rule, by_student] = shown(rule, &look, BASELINE_AND_TWIN);
    let slower = |slow: &[f64], other: &[f64]| {
        welch(slow, other).is_some_and(|test| test.t > 0.0 && test.p_value < USUAL_LEVEL)
    };
    let apart = in_sequence(condition, 1, rounds, random);
    let slow: Vec<f64> = apart[1]
        .iter()
        .map(|time| time * (1.0 + announced))
        .collect();
    Some(Shows {
        announced,
        rule: by_rule == Shown::Above,
        student: by_student == Shown::Above,
        welch: slower(&times[BASELINE_AND_TWIN], &times[0]),
        in_sequence: slower(&slow, &apart[0]),
    })
}

/// Runs a race whose first rival is slower by `difference`. Returns, for each test, the first round
/// that shows the rival to be slower; `None` if none of `most` rounds does. The tests are the two
/// rules, and Student's interval alone at the error level of the first rule.
pub fn rounds_needed(
    condition: &Condition,
    rules: [&Rule; 2],
    rivals: usize,
    difference: f64,
    most: usize,
    random: &mut ChaCha8Rng,
) -> [Option<usize>; 3] {
    let mut race = Simulated::new(condition, rivals, random);
    let mut found = [None; 3];
    for round in 1..=most {
        race.run_round();
        if let Some(time) = race.times[BASELINE_AND_TWIN].last_mut() {
            *time *= 1.0 + difference;
        }
        let look = figures(&race.times);
        let [first, second] = rules.map(|rule| shown(rule, &look, BASELINE_AND_TWIN));
        for (found, shown) in found.iter_mut().zip([first[0], second[0], first[1]]) {
            if found.is_none() && shown == Shown::Above {
                *found = Some(round);
            }
        }
        if found.iter().all(Option::is_some) {
            break;
        }
    }
    found
}
