//! Tests that beaten rivals leave a race early, and that the race ends when the judged figures are
//! decided, at the requested rounds or precision, or at new limits.
//!
//! The command prints the judged figure: 1 for the baseline and its twin, and the value of its
//! setting for any rival except `open`.

use std::sync::atomic::{AtomicBool, Ordering};

use heapdrome_engine::failure::Failure;
use heapdrome_engine::race::{Contest, LATEST, Origin, find};
use heapdrome_measure::launcher::Simulation;
use heapdrome_schema::{Better, Metric, Options, RaceResult, Status, Stopping};

use crate::support::{self, Site, done, end, ran, rival};

/// Returns conditions under which beaten entrants leave a race, and the race ends when every
/// entrant is decided or after `max_rounds` rounds.
fn deciding(max_rounds: u32) -> Stopping {
    Stopping {
        min_rounds: 5,
        max_rounds,
        until_decided: true,
        margin: Some(0.02),
        ..Stopping::default()
    }
}

/// Simulates a command that prints the entrant's figure. The setting `open` alternates between 0.5
/// and 2, which never shows a difference.
fn figures() -> Simulation {
    let twice = AtomicBool::new(false);
    Simulation::new(move |run| {
        let figure = match rival(run) {
            None => "1",
            Some("open") if twice.fetch_xor(true, Ordering::Relaxed) => "2",
            Some("open") => "0.5",
            Some(figure) => figure,
        };
        end(format!("figure {figure}\n"))
    })
}

/// Races rivals of these names, each with the figure that its setting states.
fn race(site: &Site, rivals: &[(&str, &str)], stopping: Stopping) -> RaceResult {
    let options = Options {
        metrics: vec![Metric {
            name: "figure".to_owned(),
            pattern: "figure ([.0-9]+)".to_owned(),
            better: Better::Lower,
        }],
        judged: vec!["figure".to_owned()],
        compare_output: false,
        ..support::options()
    };
    done(site.race(support::plan(rivals, options, stopping), figures()))
}

/// Returns the number of rounds of each entrant, and the number after which it was decided, if it
/// was. The baseline and its twin come first.
fn rounds(result: &RaceResult) -> Vec<(usize, Option<u32>)> {
    let rows = result.entrants.iter();
    rows.map(|row| {
        assert_eq!(row.status, Status::Ok);
        (support::samples(row), row.decided_after)
    })
    .collect()
}

#[test]
fn a_race_ends_when_all_is_decided() {
    let site = Site::new();
    let rivals = [("better", "0.5"), ("same", "1"), ("worse", "2")];
    let result = race(&site, &rivals, deciding(150));
    assert_eq!(rounds(&result), [(5, None); 5]);
    let ended = "decided after 5 rounds: for every entrant still racing, each interval of figure shows a difference or excludes one above 2%";
    assert_eq!(result.ended, ended);
    assert_eq!(result.options.judged, ["figure"]);
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
    let result = race(&site, &rivals, deciding(7));
    let (whole, left) = ((7, None), (5, Some(5)));
    assert_eq!(rounds(&result), [whole, whole, left, whole, whole, left]);
    assert_eq!(result.ended, "7 rounds done");
    let decided = ["Decided", "rounds: 5", "worse", "good"];
    assert!(site.told.holds(&decided), "{}", site.told.text());
    for leader in ["system", "best"] {
        let because = format!("\"because\":\"{leader} is better in figure\"");
        assert!(site.journal().contains(&because), "{because}");
    }
}

#[test]
fn with_all_rounds_nobody_leaves() {
    let stopping = Stopping {
        until_decided: false,
        ..deciding(7)
    };
    let result = race(&Site::new(), &[("worse", "2"), ("open", "open")], stopping);
    assert_eq!(rounds(&result), [(7, None); 4]);
}

#[test]
fn rounds_and_precision_are_what_was_asked_for() {
    let exact = Stopping {
        min_rounds: 5,
        max_rounds: 6,
        ..Stopping::default()
    };
    let result = race(&Site::new(), &[("worse", "2")], exact);
    assert_eq!(rounds(&result), [(6, None); 3]);
    assert_eq!(result.least_rounds, None);
    let precise = Stopping {
        precision: Some(0.01),
        min_rounds: 5,
        max_rounds: 150,
        ..Stopping::default()
    };
    let result = race(&Site::new(), &[("worse", "2")], precise);
    assert_eq!(rounds(&result), [(5, None); 3]);
    assert_eq!(result.ended, "every interval is within 1.00%");
}

#[test]
fn a_race_that_has_ended_goes_on_until_new_limits() {
    let site = Site::new();
    let first = race(&site, &[("open", "open")], deciding(5));
    assert_eq!(first.rounds, 5);
    let engine = site.engine(figures());
    let contest = Contest::resume(&site.folder(), &engine).and_then(|mut contest| {
        contest.limit(deciding(8))?;
        Ok(contest)
    });
    let second = done(ran(contest));
    let outlook = ["Outlook", "expected time left: "];
    assert!(site.told.holds(&outlook), "{}", site.told.text());
    assert_eq!(rounds(&second), [(8, None); 3]);
    assert_eq!(second.ended, "8 rounds done");
    let metrics = |result: &RaceResult| result.entrants[2].metrics["figure"].samples.clone();
    assert!(metrics(&second).starts_with(&metrics(&first)));
    let walls = |result: &RaceResult| result.entrants[2].wall_s.clone().map(|wall| wall.samples);
    let (before, after) = (walls(&first), walls(&second));
    let (before, after) = (before.expect("samples"), after.expect("samples"));
    assert!(after.starts_with(&before));
    // An ended race continues only with new limits.
    let over = find(LATEST, false, &engine, |_| Origin::Race);
    let Err(Failure::Usage(over)) = over else {
        panic!("it goes on");
    };
    assert!(over.contains("no unfinished race"), "{over}");
}
