//! Counts false verdicts over simulated races of equals, and how often real differences are shown.
//!
//! Every race is judged by the rule and the stopping that judge real races. See docs/statistics.md.

mod noise;
mod race;
mod table;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use heapdrome_statistics::{FEWEST_ROUNDS, Rule, Stopping, median};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use noise::{Condition, log_normal, parse_recorded, read_recorded};
use table::{FalseVerdicts, Needed, Power, Rate, Tables, TwoRaces};

/// Rivals of the two kinds of race.
const RIVALS: [usize; 2] = [1, 8];

/// The seed of the fitted run times, which are the same for every seed of the races.
const FITTED_SEED: u64 = 1;

/// Most rounds that are tried to show a difference.
const MOST_ROUNDS: usize = 150;

/// Counts false verdicts over simulated races of equals.
#[derive(Debug, Parser)]
struct Arguments {
    /// Races for each condition and number of rivals; power and rounds needed take a tenth
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(10..))]
    races: u64,
    /// Half-width of the intervals at which a race stops
    #[arg(long, default_value_t = 0.02)]
    precision: f64,
    /// Rounds before which no race stops as precise
    #[arg(long, default_value_t = FEWEST_ROUNDS)]
    min_rounds: usize,
    /// Rounds after which every race stops
    #[arg(long, default_value_t = 40)]
    max_rounds: usize,
    /// Probability of a false verdict that each race is allowed
    #[arg(long, default_value_t = 0.05)]
    alpha: f64,
    /// The seed from which every draw follows
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Run times to draw from in place of the shipped ones (CSV or JSON); may be repeated
    #[arg(long, value_name = "FILE")]
    recorded: Vec<PathBuf>,
    /// Write the figures to this file as JSON too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Only print the rate and its upper 95% bound for so many events ...
    #[arg(long, requires = "of")]
    count: Option<u64>,
    /// ... in so many trials
    #[arg(long, requires = "count")]
    of: Option<u64>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("false-verdicts: {problem}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<String, String> {
    if let (Some(count), Some(of)) = (arguments.count, arguments.of) {
        if count > of || of == 0 {
            return Err(format!(
                "{count} of {of} is not a rate; give --count no larger than --of"
            ));
        }
        return Ok(format!("{}\n", Rate { count, of }.text()));
    }
    let conditions = conditions(&arguments.recorded)?;
    let tables = std::thread::scope(|scope| {
        let rows = |condition| scope.spawn(move || rows(arguments, condition));
        let running: Vec<_> = conditions.iter().map(rows).collect();
        let mut tables = Tables::default();
        for thread in running {
            let mut part = thread
                .join()
                .map_err(|_| "a simulation failed".to_owned())?;
            tables.false_verdicts.append(&mut part.false_verdicts);
            tables.two_races.append(&mut part.two_races);
            tables.power.append(&mut part.power);
            tables.needed.append(&mut part.needed);
        }
        Ok::<_, String>(tables)
    })?;
    if let Some(path) = &arguments.json {
        write_whole(path, &format!("{:#}\n", tables.json()))
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    Ok(tables.markdown())
}

/// Writes beside `path` first, so that nobody reads half a file; a special file such as
/// `/dev/stdout` is written directly.
fn write_whole(path: &Path, text: &str) -> std::io::Result<()> {
    if std::fs::metadata(path).is_ok_and(|old| !old.is_file()) {
        return std::fs::write(path, text);
    }
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    std::fs::write(&partial, text)?;
    std::fs::rename(&partial, path)
}

/// The shipped conditions, or one for each recorded file.
fn conditions(recorded: &[PathBuf]) -> Result<Vec<Condition>, String> {
    let plain = |name: &str, recorded| Condition {
        name: name.to_owned(),
        recorded,
        drift_per_run: 0.0,
        first_slower: 0.0,
    };
    if !recorded.is_empty() {
        let read = |path: &PathBuf| {
            let name = path
                .file_stem()
                .map(|stem| stem.to_string_lossy().into_owned());
            Ok(plain(&name.unwrap_or_default(), read_recorded(path)?))
        };
        return recorded.iter().map(read).collect();
    }
    let quiet = parse_recorded(include_str!("../../../data/quiet.csv"))?;
    let neighbour = parse_recorded(include_str!("../../../data/neighbour.csv"))?;
    let fitted = plain(
        "log-normal, fitted to quiet",
        log_normal(&quiet, FITTED_SEED),
    );
    let drift = plain("drift, each run 0.05% slower", quiet.clone());
    let first = plain("first run of each round 20% slower", quiet.clone());
    Ok(vec![
        plain("quiet", quiet),
        fitted,
        Condition {
            drift_per_run: 0.0005,
            ..drift
        },
        plain("busy neighbour", neighbour),
        Condition {
            first_slower: 0.2,
            ..first
        },
    ])
}

/// Everything that is counted in one condition.
fn rows(arguments: &Arguments, condition: &Condition) -> Tables {
    let mut tables = Tables::default();
    for rivals in RIVALS {
        let rule = Rule::new(arguments.alpha, rivals);
        tables
            .false_verdicts
            .push(false_verdicts(arguments, condition, &rule));
        for slower in [0.0, 0.05] {
            let counted = two_races(arguments, condition, &rule, slower);
            tables.two_races.push(counted);
        }
        for rounds in [10, 20, 40] {
            tables
                .power
                .push(power(arguments, condition, &rule, rounds));
        }
        for difference in [0.02, 0.05, 0.1, 1.0] {
            tables
                .needed
                .push(needed(arguments, condition, &rule, difference));
        }
    }
    tables
}

fn stopping(arguments: &Arguments) -> Stopping {
    Stopping {
        precision: Some(arguments.precision),
        min_rounds: arguments.min_rounds,
        max_rounds: arguments.max_rounds.max(1),
    }
}

/// Two races in which nothing changed but, perhaps, the speed of the machine.
fn two_races(arguments: &Arguments, condition: &Condition, rule: &Rule, slower: f64) -> TwoRaces {
    let stopping = stopping(arguments);
    let mut random = ChaCha8Rng::seed_from_u64(arguments.seed);
    let mut counts = [0_u64; 3];
    for _ in 0..arguments.races {
        let errs = race::two_races_err(condition, rule, &stopping, slower, &mut random);
        for (count, event) in counts.iter_mut().zip([errs.itself, errs.beside, errs.both]) {
            *count += u64::from(event);
        }
    }
    let [itself, beside, both] = counts.map(|count| Rate {
        count,
        of: arguments.races,
    });
    TwoRaces {
        condition: condition.name.clone(),
        rivals: rule.comparisons(),
        slower,
        itself,
        beside,
        both,
    }
}

fn false_verdicts(arguments: &Arguments, condition: &Condition, rule: &Rule) -> FalseVerdicts {
    let stopping = stopping(arguments);
    let mut random = ChaCha8Rng::seed_from_u64(arguments.seed);
    let mut rounds = Vec::new();
    let mut counts = [0_u64; 4];
    for _ in 0..arguments.races {
        let (outcome, _) = race::race_of_equals(condition, rule, &stopping, &mut random);
        let usual = race::usual_way_errs(
            condition,
            rule.comparisons(),
            outcome.rounds,
            arguments.alpha,
            &mut random,
        );
        rounds.push(outcome.rounds as f64);
        let events = [
            outcome.precise,
            outcome.at_the_end,
            outcome.at_any_look,
            usual,
        ];
        for (count, event) in counts.iter_mut().zip(events) {
            *count += u64::from(event);
        }
    }
    let [precise, at_the_end, at_any_look, usual] = counts.map(|count| Rate {
        count,
        of: arguments.races,
    });
    FalseVerdicts {
        condition: condition.name.clone(),
        rivals: rule.comparisons(),
        median_rounds: median(&rounds).unwrap_or(0.0),
        precise,
        at_the_end,
        at_any_look,
        usual,
    }
}

fn power(arguments: &Arguments, condition: &Condition, rule: &Rule, rounds: usize) -> Power {
    let mut random = ChaCha8Rng::seed_from_u64(arguments.seed);
    let race = |_| race::announced_is_shown(condition, rule, rounds, &mut random);
    let races: Vec<(f64, bool)> = (0..arguments.races / 10).filter_map(race).collect();
    let announced: Vec<f64> = races.iter().map(|race| race.0).collect();
    let shown = races.iter().filter(|race| race.1).count() as u64;
    Power {
        condition: condition.name.clone(),
        rivals: rule.comparisons(),
        rounds,
        announced: median(&announced).unwrap_or(0.0),
        shown: Rate {
            count: shown,
            of: races.len() as u64,
        },
    }
}

fn needed(arguments: &Arguments, condition: &Condition, rule: &Rule, difference: f64) -> Needed {
    let mut random = ChaCha8Rng::seed_from_u64(arguments.seed);
    let races = arguments.races as usize / 10;
    let race = |_| race::rounds_needed(condition, rule, difference, MOST_ROUNDS, &mut random);
    let mut rounds: Vec<usize> = (0..races).filter_map(race).collect();
    rounds.sort_unstable();
    let after = |share: f64| {
        rounds
            .get((share * races as f64).ceil() as usize - 1)
            .copied()
    };
    Needed {
        condition: condition.name.clone(),
        rivals: rule.comparisons(),
        difference,
        half: after(0.5),
        most: after(0.8),
    }
}
