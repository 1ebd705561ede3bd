//! Simulated machines on which races run.

use std::path::PathBuf;

use crate::noise::{Condition, log_normal, parse_recorded, read_recorded};

/// Seed of the fitted run times. It is independent of the seed of the races.
const FITTED_SEED: u64 = 1;

/// Returns the shipped conditions, or one condition for each recorded file.
pub fn conditions(recorded: &[PathBuf]) -> Result<Vec<Condition>, String> {
    if !recorded.is_empty() {
        let read = |path: &PathBuf| {
            let name = path
                .file_stem()
                .map(|stem| stem.to_string_lossy().into_owned());
            Ok(Condition::plain(
                &name.unwrap_or_default(),
                read_recorded(path)?,
            ))
        };
        return recorded.iter().map(read).collect();
    }
    let quiet = parse_recorded(include_str!("../../../data/quiet.csv"))?;
    let neighbour = parse_recorded(include_str!("../../../data/neighbour.csv"))?;
    let fitted = log_normal(&quiet, FITTED_SEED);
    let mut all = alike(&quiet, &neighbour, &fitted);
    all.extend(unlike(&quiet, &neighbour, &fitted));
    Ok(all)
}

fn of(name: &str, recorded: &[f64]) -> Condition {
    Condition::plain(name, recorded.to_vec())
}

/// Returns conditions under which the runs of all entrants are equally noisy.
fn alike(quiet: &[f64], neighbour: &[f64], fitted: &[f64]) -> Vec<Condition> {
    vec![
        of("quiet", quiet),
        of("log-normal, fitted to quiet", fitted),
        Condition {
            drift_per_run: 0.0005,
            ..of("drift, each run 0.05% slower", quiet)
        },
        of("busy neighbour", neighbour),
        Condition {
            first_slower: 0.2,
            ..of("first run of each round 20% slower", quiet)
        },
        Condition {
            step: 0.004,
            ..of("quiet, read in steps of 4 ms", quiet)
        },
    ]
}

/// Returns conditions under which one rival is noisier than the others, or rivals leave the race.
fn unlike(quiet: &[f64], neighbour: &[f64], fitted: &[f64]) -> Vec<Condition> {
    vec![
        Condition {
            rival_noise: 3.0,
            unequal: true,
            ..of("log-normal, one rival three times as noisy", fitted)
        },
        Condition {
            rival_noise: 3.0,
            symmetric: true,
            unequal: true,
            ..of("busy neighbour, one rival three times as noisy", neighbour)
        },
        Condition {
            rival_spikes: 0.1,
            unequal: true,
            ..of("quiet, one rival with spikes of its own", quiet)
        },
        Condition {
            leaving: true,
            ..of("quiet, half of the rivals 10% slower; they leave", quiet)
        },
        Condition {
            leaving: true,
            ..of(
                "busy neighbour, half of the rivals 10% slower; they leave",
                neighbour,
            )
        },
    ]
}
