//! Tests the order of the runs of a race, and a metric that is read from their output.

use std::sync::{Arc, Mutex};

use heapdrome_measure::launcher::Simulation;
use heapdrome_schema::{Better, Metric, Options, Plan};

use crate::support::{self, Site, done, end, rival, row};

/// Rivals, each with a setting that identifies it.
const RIVALS: [(&str, &str); 2] = [("one", "one"), ("other", "other")];

/// Returns the rivals of all timed runs of a race with this seed, in the order of the runs. `None`
/// stands for the baseline and its twin.
fn order(seed: u64) -> Vec<Option<String>> {
    let runs = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&runs);
    let simulation = Simulation::new(move |run| {
        let name = rival(run).map(str::to_owned);
        kept.lock().expect("no run panics").push(name);
        end("")
    });
    let plan = support::plan(&RIVALS, support::options(), support::rounds(6));
    done(Site::new().race(Plan { seed, ..plan }, simulation));
    let runs = runs.lock().expect("no run panics");
    runs.clone()
}

#[test]
fn the_same_seed_races_in_the_same_order() {
    let first = order(3);
    assert_eq!(first.len(), 6 * 4, "every entrant in every round");
    assert_eq!(first, order(3));
    assert_ne!(first, order(4));
}

#[test]
fn a_metric_is_read_from_the_output() {
    let options = Options {
        metrics: vec![Metric {
            name: "steps".to_owned(),
            pattern: r"worked (\d+) steps".to_owned(),
            better: Better::Higher,
        }],
        ..support::options()
    };
    let plan = support::plan(&RIVALS, options, support::rounds(6));
    let result = done(Site::new().race(plan, Simulation::new(|_| end("worked 1234 steps\n"))));
    let row = row(&result, "one");
    assert!((row.metrics["steps"].median - 1234.0).abs() < f64::EPSILON);
    let versus = &row.versus_baseline["steps"];
    assert!((versus.ratio - 1.0).abs() < f64::EPSILON, "{versus:?}");
}
