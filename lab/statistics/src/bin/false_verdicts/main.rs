//! Simulates races. Counts false verdicts on equal entrants and in comparisons of two races, and
//! real differences that the races show.
//!
//! The rule and the stopping criterion are those of real races. See docs/statistics-results.md.

mod conditions;
mod counts;
mod noise;
mod race;
mod table;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Parser;

use conditions::conditions;
use counts::{Job, Wanted};
use table::{Rate, Tables};

/// Counts false verdicts in simulated races of equal entrants.
#[derive(Debug, Parser)]
struct Arguments {
    /// Races of equal entrants for each condition and number of rivals; the other tables use a
    /// tenth
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(10..))]
    races: u64,
    /// Rounds of each race of equal entrants; maximum for races that stop when precise
    #[arg(long, default_value_t = 40)]
    rounds: usize,
    /// Rivals in each race; repeatable
    #[arg(long, default_values_t = [1, 8], value_parser = clap::value_parser!(u64).range(1..=100))]
    rivals: Vec<u64>,
    /// Compute only these tables; repeatable
    #[arg(long, value_enum, default_values_t = [Wanted::False, Wanted::TwoRaces, Wanted::Power, Wanted::Rounds])]
    table: Vec<Wanted>,
    /// Simulate only the condition with this name; repeatable
    #[arg(long, value_name = "NAME")]
    condition: Vec<String>,
    /// Number of simulations that run in parallel
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..))]
    threads: u64,
    /// Permitted probability of a false verdict in each race
    #[arg(long, default_value_t = 0.05)]
    alpha: f64,
    /// Seed of all random draws
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Run times to draw from instead of the shipped ones (CSV or JSON); repeatable
    #[arg(long, value_name = "FILE")]
    recorded: Vec<PathBuf>,
    /// Also write the figures to this file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Only print the rate and its upper 95% bound for this many events
    #[arg(long, requires = "of")]
    count: Option<u64>,
    /// Number of trials that --count refers to
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
    let mut conditions = conditions(&arguments.recorded)?;
    if !arguments.condition.is_empty() {
        conditions.retain(|condition| arguments.condition.contains(&condition.name));
    }
    let mut jobs = Vec::new();
    for wanted in &arguments.table {
        for condition in &conditions {
            for rivals in &arguments.rivals {
                jobs.push(Job {
                    wanted: *wanted,
                    condition,
                    rivals: *rivals as usize,
                });
            }
        }
    }
    let tables = count(arguments, &jobs)?;
    if let Some(path) = &arguments.json {
        write_whole(path, &format!("{:#}\n", tables.json()))
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    Ok(tables.markdown())
}

/// Writes to a temporary file in the folder of `path` and renames it, so that no reader sees an
/// incomplete file. A special file such as `/dev/stdout` is written directly.
fn write_whole(path: &Path, text: &str) -> std::io::Result<()> {
    if std::fs::metadata(path).is_ok_and(|old| !old.is_file()) {
        return std::fs::write(path, text);
    }
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    std::fs::write(&partial, text)?;
    std::fs::rename(&partial, path)
}

/// Computes all tables. Their rows are in the order of the jobs, regardless of the threads that run
/// them.
fn count(arguments: &Arguments, jobs: &[Job<'_>]) -> Result<Tables, String> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(place) else {
                return done;
            };
            done.push((place, job.run(arguments)));
        }
    };
    let mut parts = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..arguments.threads).map(|_| scope.spawn(work)).collect();
        let mut parts = Vec::new();
        for thread in threads {
            let done = thread
                .join()
                .map_err(|_| "a simulation failed".to_owned())?;
            parts.extend(done);
        }
        Ok::<_, String>(parts)
    })?;
    parts.sort_by_key(|(place, _)| *place);
    let mut tables = Tables::default();
    for (_, mut part) in parts {
        tables.append(&mut part);
    }
    Ok(tables)
}
