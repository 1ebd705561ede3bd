//! Races that end when the judged figures are decided, and from which a beaten rival leaves.
//!
//! The judged figure is one that the command prints: the baseline prints 1, and a rival what its settings say.

use std::sync::atomic::{AtomicBool, Ordering};

use heapdrome_engine::Engine;
use heapdrome_engine::failure::Failure;
use heapdrome_engine::race::{Contest, Ended};
use heapdrome_measure::launcher::{SimulatedRun, Simulation};
use heapdrome_schema::{Better, Entrant, Metric, Options, Plan, RaceResult, Role, Stopping};

use crate::support::{self, Told, end};

/// The setting of a rival's figure.
const FIGURE: &str = "FIGURE";

/// Limits of a race that ends when every entrant is decided, and that beaten entrants leave.
fn deciding(max_rounds: u32) -> Stopping {
    Stopping {
        min_rounds: 5,
        max_rounds,
        until_decided: true,
        margin: Some(0.02),
        ..Stopping::default()
    }
}

fn plan(rivals: &[(&str, &str)], stopping: Stopping) -> Plan {
    let entrant = |name: &str, role: Role| Entrant {
        name: name.to_owned(),
        role,
        ..Entrant::default()
    };
    let mut entrants = vec![
        entrant("system", Role::Baseline),
        entrant("system (again)", Role::Twin),
    ];
    entrants.extend(rivals.iter().map(|(name, figure)| Entrant {
        settings: [(FIGURE.to_owned(), (*figure).to_owned())].into(),
        ..entrant(name, Role::Rival)
    }));
    Plan {
        command: vec!["true".to_owned()],
        asked: Vec::new(),
        part: None,
        started_in: std::env::current_dir().expect("a folder"),
        started: "2026-11-23T12:00:00Z".to_owned(),
        notes: Vec::new(),
        entrants,
        seed: 7,
        options: Options {
            metrics: vec![Metric {
                name: "figure".to_owned(),
                pattern: "figure ([.0-9]+)".to_owned(),
                better: Better::Lower,
            }],
            judged: vec!["figure".to_owned()],
            compare_output: false,
            ..support::options()
        },
        stopping,
        alpha: 0.05,
    }
}

/// Prints the figure of the entrant; `open` stands for a half and two in turns, which never shows anything.
fn figures() -> Simulation {
    let twice = AtomicBool::new(false);
    Simulation::new(move |run: &SimulatedRun| {
        let figure = match run.environment.get(FIGURE).map(String::as_str) {
            None => "1",
            Some("open") if twice.fetch_xor(true, Ordering::Relaxed) => "2",
            Some("open") => "0.5",
            Some(figure) => figure,
        };
        end(format!("figure {figure}\n"))
    })
}

/// A site of its own, and the messages of the race there.
struct Site {
    root: tempfile::TempDir,
    told: Told,
}

impl Site {
    fn new() -> Self {
        Self {
            root: tempfile::tempdir().expect("a folder"),
            told: Told::default(),
        }
    }

    fn engine(&self) -> Engine {
        support::engine(self.root.path(), &self.told).simulated(figures())
    }

    fn race(&self, rivals: &[(&str, &str)], stopping: Stopping) -> RaceResult {
        let contest = Contest::start(&self.engine(), plan(rivals, stopping));
        ran(contest)
    }
}

fn ran(contest: Result<Contest, Failure>) -> RaceResult {
    let mut contest = contest.unwrap_or_else(|error| panic!("{error}"));
    let ended = contest.run();
    assert!(matches!(ended, Ok(Ended::Done(_))));
    contest.result(&ended)
}

/// How many rounds each entrant ran, and after how many it was decided; the baseline and its twin first.
fn rounds(result: &RaceResult) -> Vec<(usize, Option<u32>)> {
    let rows = result.entrants.iter();
    rows.map(|row| {
        let runs = row.wall_s.as_ref().map_or(0, |wall| wall.samples.len());
        (runs, row.decided_after)
    })
    .collect()
}

#[test]
fn a_race_ends_when_all_is_decided() {
    let site = Site::new();
    let rivals = [("better", "0.5"), ("same", "1"), ("worse", "2")];
    let result = site.race(&rivals, deciding(150));
    assert_eq!(rounds(&result), [(5, None); 5]);
    let ended = "decided after 5 rounds: each interval of figure shows a difference, or that it is at most 2%";
    assert_eq!(result.ended, ended);
    assert_eq!(result.least_rounds, Some(5));
    let floor = result.noise_floor.expect("a noise floor");
    assert!(floor.smallest_by_figure.contains_key("figure"));
}

#[test]
fn a_beaten_rival_leaves_and_the_others_run_on() {
    let site = Site::new();
    let rivals = [
        ("worse", "2"),
        ("open", "open"),
        ("best", "0.5"),
        ("good", "0.9"),
    ];
    let result = site.race(&rivals, deciding(7));
    let (whole, left) = ((7, None), (5, Some(5)));
    assert_eq!(rounds(&result), [whole, whole, left, whole, whole, left]);
    assert_eq!(result.ended, "7 rounds done");
    let decided = ["Decided", "rounds: 5", "worse", "good"];
    assert!(site.told.holds(&decided), "{}", site.told.text());
}

#[test]
fn with_all_rounds_nobody_leaves() {
    let stopping = Stopping {
        until_decided: false,
        ..deciding(7)
    };
    let result = Site::new().race(&[("worse", "2"), ("open", "open")], stopping);
    assert_eq!(rounds(&result), [(7, None); 4]);
}

#[test]
fn rounds_and_precision_are_what_was_asked_for() {
    let exact = Stopping {
        min_rounds: 5,
        max_rounds: 6,
        ..Stopping::default()
    };
    let result = Site::new().race(&[("worse", "2")], exact);
    assert_eq!(rounds(&result), [(6, None); 3]);
    assert_eq!(result.least_rounds, None);
    let precise = Stopping {
        precision: Some(0.01),
        min_rounds: 5,
        max_rounds: 150,
        ..Stopping::default()
    };
    let result = Site::new().race(&[("worse", "2")], precise);
    assert_eq!(rounds(&result), [(5, None); 3]);
    assert_eq!(result.ended, "every interval is within 1.00%");
}

#[test]
fn a_race_that_has_ended_goes_on_until_new_limits() {
    let site = Site::new();
    let first = site.race(&[("open", "open")], deciding(5));
    assert_eq!(first.rounds, 5);
    let engine = site.engine();
    let mut races = std::fs::read_dir(&engine.folders.races).expect("races");
    let folder = races.next().expect("a race").expect("its folder").path();
    let contest = Contest::resume(&folder, &engine).and_then(|mut contest| {
        contest.limit(deciding(8))?;
        Ok(contest)
    });
    let second = ran(contest);
    assert_eq!(rounds(&second), [(8, None); 3]);
    assert_eq!(second.ended, "8 rounds done");
    let samples = |result: &RaceResult| result.entrants[2].metrics["figure"].samples.clone();
    assert!(samples(&second).starts_with(&samples(&first)));
}
