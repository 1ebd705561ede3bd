//! Jobs that simulate races and count their outcomes for the tables.

use heapdrome_statistics::{FEWEST_ROUNDS, Rule, Stopping, median};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::Arguments;
use crate::noise::Condition;
use crate::race::{self, Errors, Shows, Truth};
use crate::table::{FalseVerdicts, Needed, Power, Rate, Tables, TwoRaces};

/// Half-width of the intervals, as a fraction, at which a race stops. Only comparisons of two races
/// use this limit.
const PRECISION: f64 = 0.02;

/// Maximum number of rounds in which a race may show a difference.
const MOST_ROUNDS: usize = 150;

/// A table that `--table` can select.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Wanted {
    /// False verdicts in races of equals
    False,
    /// False verdicts between two races
    TwoRaces,
    /// Power at the announced difference
    Power,
    /// Rounds until a difference is shown
    Rounds,
}

/// One unit of work: the rows of a table for one condition and one number of rivals.
pub struct Job<'a> {
    /// Table to which the rows belong.
    pub wanted: Wanted,
    /// Condition of the simulated machine.
    pub condition: &'a Condition,
    /// Number of rivals in each race.
    pub rivals: usize,
}

impl Job<'_> {
    /// Simulates the races of this job, and returns tables with the job's rows.
    pub fn run(&self, arguments: &Arguments) -> Tables {
        let rule = Rule::new(arguments.alpha, self.rivals);
        let mut tables = Tables::default();
        match self.wanted {
            Wanted::False => tables
                .false_verdicts
                .push(self.false_verdicts(arguments, &rule)),
            Wanted::TwoRaces => {
                let rows = [0.0, 0.05].map(|slower| self.two_races(arguments, &rule, slower));
                tables.two_races.extend(rows);
            }
            Wanted::Power => {
                let rows = [10, 20, 40].map(|rounds| self.power(arguments, &rule, rounds));
                tables.power.extend(rows);
            }
            Wanted::Rounds => {
                let rows = [0.02, 0.05, 0.1, 1.0].map(|by| self.needed(arguments, &rule, by));
                tables.needed.extend(rows);
            }
        }
        tables
    }

    fn false_verdicts(&self, arguments: &Arguments, rule: &Rule) -> FalseVerdicts {
        let mut random = ChaCha8Rng::seed_from_u64(arguments.seed);
        let rounds = arguments.rounds;
        let truth = match self.condition.unequal {
            true => Truth::simulated(self.condition, rule, rounds, &mut random),
            false => Truth::EQUAL,
        };
        let race = |_| race::errors(self.condition, rule, rounds, &truth, &mut random);
        let races: Vec<Errors> = (0..arguments.races).map(race).collect();
        let rate = |of: fn(&Errors) -> bool| rate(&races, of);
        FalseVerdicts {
            condition: self.condition.name.clone(),
            rivals: self.rivals,
            rounds,
            at_any_look: rate(|errors| errors.at_any_look),
            at_the_end: rate(|errors| errors.at_the_end),
            twin: rate(|errors| errors.twin),
            student: rate(|errors| errors.student),
            welch: rate(|errors| errors.welch),
            in_sequence: rate(|errors| errors.in_sequence),
        }
    }

    /// Counts the comparisons of two races of the same entrants that show a change. The machine of
    /// the second race is slower by the fraction `slower`.
    fn two_races(&self, arguments: &Arguments, rule: &Rule, slower: f64) -> TwoRaces {
        let stopping = Stopping {
            precision: Some(PRECISION),
            min_rounds: FEWEST_ROUNDS,
            max_rounds: arguments.rounds,
        };
        let mut random = ChaCha8Rng::seed_from_u64(arguments.seed);
        let condition = self.condition;
        let race = |_| race::two_races_err(condition, rule, &stopping, slower, &mut random);
        let races: Vec<race::Errs> = (0..arguments.races / 10).map(race).collect();
        TwoRaces {
            condition: condition.name.clone(),
            rivals: self.rivals,
            slower,
            itself: rate(&races, |errs| errs.itself),
            beside: rate(&races, |errs| errs.beside),
            both: rate(&races, |errs| errs.both),
        }
    }

    fn power(&self, arguments: &Arguments, rule: &Rule, rounds: usize) -> Power {
        let mut random = ChaCha8Rng::seed_from_u64(arguments.seed);
        let race = |_| race::announced_is_shown(self.condition, rule, rounds, &mut random);
        let races: Vec<Shows> = (0..arguments.races / 10).filter_map(race).collect();
        let announced: Vec<f64> = races.iter().map(|race| race.announced).collect();
        Power {
            condition: self.condition.name.clone(),
            rivals: self.rivals,
            rounds,
            announced: median(&announced).unwrap_or(0.0),
            rule: rate(&races, |shows| shows.rule),
            student: rate(&races, |shows| shows.student),
            welch: rate(&races, |shows| shows.welch),
            in_sequence: rate(&races, |shows| shows.in_sequence),
        }
    }

    fn needed(&self, arguments: &Arguments, rule: &Rule, difference: f64) -> Needed {
        let mut random = ChaCha8Rng::seed_from_u64(arguments.seed);
        let races = arguments.races as usize / 10;
        // With two judged figures, twice as many comparisons share the error level.
        let two_figures = Rule::new(arguments.alpha, 2 * self.rivals);
        let rules = [rule, &two_figures];
        let found: Vec<[Option<usize>; 3]> = (0..races)
            .map(|_| {
                let (rivals, most) = (self.rivals, MOST_ROUNDS);
                let race = &mut random;
                race::rounds_needed(self.condition, rules, rivals, difference, most, race)
            })
            .collect();
        let shares = [0, 1, 2].map(|rule| {
            let mut rounds: Vec<usize> = found.iter().filter_map(|race| race[rule]).collect();
            rounds.sort_unstable();
            [0.5, 0.8].map(|share: f64| {
                let place = (share * races as f64).ceil() as usize - 1;
                rounds.get(place).copied()
            })
        });
        let [rule, two_figures, student] = shares;
        Needed {
            condition: self.condition.name.clone(),
            rivals: self.rivals,
            difference,
            rule,
            two_figures,
            student,
        }
    }
}

fn rate<T>(races: &[T], of: impl Fn(&T) -> bool) -> Rate {
    Rate {
        count: races.iter().filter(|race| of(race)).count() as u64,
        of: races.len() as u64,
    }
}
