//! Tests of outputs that differ or vary, of rivals that fail a check or are slow, and of a baseline
//! that fails in the warm-up.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use heapdrome_engine::race::Ended;
use heapdrome_measure::launcher::{SimulatedEnd, Simulation};
use heapdrome_schema::{
    Better, Ending, Metric, Options, Output, RaceResult, Role, Status, Verdict,
};

use crate::support::{self, Site, done, end, is_hook, rival, row, samples};

/// Rivals as pairs of a name and a setting. Of these two, only `talking` misbehaves, in ways that
/// each simulation defines.
const BESIDE_A_SOUND_ONE: [(&str, &str); 2] = [("talking", "talking"), ("sound", "sound")];

/// Simulates a command that prints an additional line under the rival `talking`.
fn talking() -> Simulation {
    Simulation::new(|run| match rival(run) {
        Some("talking") => end("of the allocator\ndone\n"),
        _ => end("done\n"),
    })
}

/// Races the rivals `talking` and `sound` for two rounds.
fn race(site: &Site, options: Options, simulation: Simulation) -> RaceResult {
    let plan = support::plan(&BESIDE_A_SOUND_ONE, options, support::rounds(2));
    done(site.race(plan, simulation))
}

/// Asserts that the rival `talking` left the race with `ending`, that this was reported, and that
/// the rival `sound` continued.
fn left(site: &Site, result: &RaceResult, ending: Ending) {
    let how = format!("{ending:?}");
    let told = ["Left", "\"talking\"", &how];
    assert!(site.told.holds(&told), "{}", site.told.text());
    let talking = row(result, "talking");
    assert_eq!(talking.status, Status::Failed);
    let failure = talking.failure.as_ref().expect("a failure");
    assert_eq!(failure.ending, ending);
    assert!(talking.versus_baseline.is_empty());
    let sound = row(result, "sound");
    assert_eq!((sound.status, samples(sound)), (Status::Ok, 2));
}

#[test]
fn an_allocator_that_changes_the_output_is_named() {
    let result = race(&Site::new(), support::options(), talking());
    assert_eq!(row(&result, "talking").output, Output::Different);
    assert_eq!(row(&result, "sound").output, Output::Same);
}

#[test]
fn another_output_than_the_baselines_is_a_failure_where_all_must_print_the_same() {
    let site = Site::new();
    let options = Options {
        same_output_required: true,
        ..support::options()
    };
    let result = race(&site, options, talking());
    left(&site, &result, Ending::OutputDiffers);
    let talking = row(&result, "talking");
    let failure = talking.failure.as_ref().expect("a failure");
    assert_eq!(failure.during, "round 1");
    assert_eq!(samples(talking), 1);
    let shown = support::shown(&result);
    let told = "its output differs from the baseline's in round 1";
    assert!(shown.contains(told), "{shown}");
}

#[test]
fn output_that_varies_by_itself_is_told_from_output_that_an_allocator_changes() {
    let result = race(&Site::new(), support::options(), counting("run"));
    assert_eq!(row(&result, "sound").output, Output::Varies);
}

/// Simulates a command that prints a word and the number of the run.
fn counting(word: &'static str) -> Simulation {
    let runs = AtomicUsize::new(0);
    Simulation::new(move |_| end(format!("{word} {}\n", runs.fetch_add(1, Ordering::Relaxed))))
}

#[test]
fn figures_that_a_command_prints_do_not_make_its_output_differ() {
    let plain = race(&Site::new(), support::options(), counting("rate"));
    assert_eq!(row(&plain, "system").output, Output::Varies);
    let options = Options {
        metrics: vec![Metric {
            name: "rate".to_owned(),
            pattern: "rate ([0-9]+)".to_owned(),
            better: Better::Lower,
        }],
        ..support::options()
    };
    let masked = race(&Site::new(), options, counting("rate"));
    assert_eq!(row(&masked, "sound").output, Output::Same);
    assert!(!masked.options.same_output_required);
}

#[test]
fn a_slow_allocator_is_shown_to_be_slower() {
    let runs = AtomicUsize::new(0);
    let simulation = Simulation::new(move |run| {
        let noise = runs.fetch_add(1, Ordering::Relaxed) % 7;
        let slower = if rival(run).is_some() { 2 } else { 1 };
        SimulatedEnd {
            wall: Duration::from_millis(100 + noise as u64) * slower,
            ..end("")
        }
    });
    let plan = support::plan(&[("slow", "slow")], support::options(), support::rounds(20));
    let result = done(Site::new().race(plan, simulation));
    let versus = &row(&result, "slow").versus_baseline["wall_s"];
    assert_eq!(versus.verdict, Verdict::Slower, "{versus:?}");
    assert!(
        1.0 < versus.low && versus.low <= versus.ratio && versus.ratio < 1000.0,
        "{versus:?}"
    );
    let baseline = result
        .entrants
        .iter()
        .find(|row| row.role == Role::Baseline);
    assert!(baseline.is_some_and(|row| row.versus_baseline.is_empty()));
}

#[test]
fn a_check_that_finds_a_result_wrong_counts_against_who_made_it() {
    let site = Site::new();
    let options = Options {
        check: Some("check".to_owned()),
        ..support::options()
    };
    let last = Mutex::new(None);
    let simulation = Simulation::new(move |run| {
        let mut last = last.lock().expect("no run panics");
        if !is_hook(run) {
            *last = rival(run).map(str::to_owned);
            return end("");
        }
        let status = i32::from(last.as_deref() == Some("talking"));
        SimulatedEnd {
            ending: Ending::Exited(status),
            ..end("")
        }
    });
    let result = race(&site, options, simulation);
    left(&site, &result, Ending::CheckFailed(1));
}

#[test]
fn a_baseline_that_fails_in_the_warm_up_ends_the_race() {
    let options = Options {
        warmup_rounds: 1,
        ..support::options()
    };
    let simulation = Simulation::new(|run| SimulatedEnd {
        ending: match rival(run) {
            None => Ending::TimedOut,
            Some(_) => Ending::Exited(0),
        },
        ..end("")
    });
    let plan = support::plan(&BESIDE_A_SOUND_ONE, options, support::rounds(2));
    let (result, ended) = Site::new().race(plan, simulation);
    let Ok(Ended::BaselineFailed(why)) = ended else {
        panic!("the race goes on");
    };
    assert!(why.contains("timed out"), "{why}");
    let failure = row(&result, "system").failure.as_ref().expect("a failure");
    assert_eq!(failure.during, "warm-up round 1");
}
