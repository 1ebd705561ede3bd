//! Tests sweeps that are interrupted and resumed as a whole, and a sweep whose output contains no
//! work.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use heapdrome_engine::Engine;
use heapdrome_engine::failure::Failure;
use heapdrome_engine::race::{
    AskedWork, Interrupted, Load, Origin, Sweep, SweepRequest, Whole, check_parameters, find,
};
use heapdrome_measure::launcher::Simulation;
use heapdrome_schema::{Collection, Options, Stopping, SweptParameter};

use crate::support::{self, Told, end};

/// Number of runs of a sweep of two races. Each race has eight rounds of the baseline, its twin and
/// a rival.
const RUNS: usize = 48;

/// Requests two races of a command, which alternate unless there is a `setup`.
fn request(setup: Option<&str>) -> SweepRequest {
    let parameters = vec![SweptParameter {
        name: "n".to_owned(),
        values: vec!["1".to_owned(), "2".to_owned()],
    }];
    check_parameters(&parameters, false).unwrap_or_else(|error| panic!("{error}"));
    SweepRequest {
        load: Load::Command(vec!["true".to_owned(), "{n}".to_owned()]),
        parameters,
        work: Some(AskedWork::Same),
        knee: None,
        allocators: vec!["system-arena1".to_owned()],
        baseline: "system".to_owned(),
        options: Options {
            setup: setup.map(str::to_owned),
            ..support::options()
        },
        stopping: Stopping {
            min_rounds: 5,
            max_rounds: 8,
            ..Stopping::default()
        },
    }
}

/// Returns an engine that counts its commands and is interrupted after `most` of them.
fn counting(root: &Path, told: &Told, runs: &Arc<AtomicUsize>, most: usize) -> Engine {
    let engine = support::engine(root, told);
    let (flag, runs) = (Arc::clone(&engine.interrupt), Arc::clone(runs));
    engine.simulated(Simulation::new(move |run| {
        // Count only runs of the race's own command.
        if !support::is_hook(run) && runs.fetch_add(1, Ordering::Relaxed) + 1 == most {
            flag.store(true, Ordering::Relaxed);
        }
        end("")
    }))
}

fn rounds(collection: &Collection) -> Vec<(&str, u32)> {
    let races = collection.races.iter();
    races
        .map(|race| (race.cell.as_str(), race.result.rounds))
        .collect()
}

/// Runs a sweep, interrupts it after each total number of runs in `after`, and resumes it each
/// time. Returns every result.
fn goes_on(setup: Option<&str>, after: &[usize]) -> Vec<Collection> {
    let root = tempfile::tempdir().expect("a folder");
    let (told, runs) = (Told::default(), Arc::default());
    let mut results = Vec::new();
    for most in after {
        let engine = counting(root.path(), &told, &runs, *most);
        let (result, ended) = taken_up(&engine, setup, &told);
        assert!(matches!(ended, Err(Failure::Interrupted)), "{ended:?}");
        let result = result.expect("what was done");
        assert_eq!(result.remarks[0], "interrupted before all rounds were run");
        results.push(result);
    }
    let engine = counting(root.path(), &told, &runs, usize::MAX);
    let (last, ended) = taken_up(&engine, setup, &told);
    assert!(ended.is_ok(), "{ended:?}");
    let last = last.expect("a result");
    assert_eq!(rounds(&last), [("n=1", 8), ("n=2", 8)]);
    let remarks = last.remarks.join("\n");
    let unfinished = ["interrupted", "not raced"];
    assert!(!unfinished.iter().any(|word| remarks.contains(word)));
    assert_eq!(runs.load(Ordering::Relaxed), RUNS, "each run once");
    results.push(last);
    results
}

/// Resumes the sweep that was interrupted last, or begins one if there is none.
fn taken_up(
    engine: &Engine,
    setup: Option<&str>,
    told: &Told,
) -> (Option<Collection>, Result<(), Failure>) {
    let whole = match find("latest", false, engine, |_| Origin::Sweep) {
        Ok(Interrupted::Sweep(whole)) => {
            let resume = format!("SweepUnfinished {{ resume: Some(\"{}\")", whole.name);
            assert!(told.holds(&[&resume]), "{}", told.text());
            whole
        }
        Ok(Interrupted::Race(folder)) => panic!("{}", folder.display()),
        Err(_) => Whole::new(vec!["race".to_owned()], Some(7), engine),
    };
    let sweep = Sweep::new(request(setup), whole).unwrap_or_else(|error| panic!("{error}"));
    sweep.run(engine)
}

/// Returns the difference between the numbers of rounds of the two races.
fn apart(collection: &Collection) -> u32 {
    let done = rounds(collection);
    let counts = || done.iter().map(|(_, rounds)| *rounds);
    counts().max().unwrap_or(0) - counts().min().unwrap_or(0)
}

#[test]
fn races_that_take_turns_go_on_with_rounds_that_pair() {
    // A round of a race has three runs, so the first interrupt, after 10 runs, follows three
    // complete rounds: one of the two races is then ahead.
    for second in [14, 20, 26] {
        let results = goes_on(None, &[10, second]);
        for result in &results {
            let done = rounds(result);
            assert!(apart(result) <= 1, "interrupted after {second}: {done:?}");
            assert!(result.sweep().expect("a sweep").paired);
        }
    }
}

#[test]
fn work_that_is_nowhere_in_the_output_is_told_once() {
    let root = tempfile::tempdir().expect("a folder");
    let told = Told::default();
    let engine = counting(root.path(), &told, &Arc::default(), usize::MAX);
    let asked = SweepRequest {
        work: Some(AskedWork::Printed("([0-9]+) ops".to_owned())),
        ..request(None)
    };
    let whole = Whole::new(vec!["race".to_owned()], Some(7), &engine);
    let sweep = Sweep::new(asked, whole).unwrap_or_else(|error| panic!("{error}"));
    let (result, ended) = sweep.run(&engine);
    assert!(ended.is_ok(), "{ended:?}");
    let why = "--work '([0-9]+) ops' found nothing in the output";
    assert_eq!(told.text().matches(why).count(), 1, "{}", told.text());
    assert!(!told.holds(&["MetricMissing"]), "{}", told.text());
    let result = result.expect("a result");
    let shown = support::shown(&result);
    assert!(
        result.remarks.contains(&why.to_owned()),
        "{:?}",
        result.remarks
    );
    let has_table = shown.to_lowercase().contains("degradation");
    assert!(!has_table, "no table without figures: {shown}");
}

#[test]
fn races_with_a_setup_run_one_after_the_other() {
    let results = goes_on(Some("true"), &[27]);
    assert_eq!(rounds(&results[0]), [("n=1", 8)]);
    assert!(results[0].remarks.contains(&"not raced: n=2".to_owned()));
    for result in &results {
        assert!(!result.sweep().expect("a sweep").paired);
    }
}
