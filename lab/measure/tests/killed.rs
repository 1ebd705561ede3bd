//! Tests that a killed measurer leaves no process alive, and that its race can be resumed.

mod common;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::within;
use heapdrome_measure::{Race, journal};

/// Starts a process that races `script` in `folder`.
fn measurer(folder: &Path, rounds: u32, script: &str) -> Child {
    Command::new(common::launcher().program)
        .arg("race")
        .arg(folder)
        .args([&rounds.to_string(), "sh", "-c", script])
        .stdin(Stdio::null())
        .spawn()
        .expect("a measurer starts")
}

#[test]
fn nothing_measured_outlives_a_killed_measurer() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("race");
    // One child is detached, one ignores SIGTERM, and one runs in the foreground.
    let script = "setsid sleep 81.25 & (trap '' TERM HUP; sleep 82.25; sleep 82.25) & sleep 83.25";
    let mut measurer = measurer(&place, 1, script);
    let words = ["81.25", "82.25", "83.25"];
    within(Duration::from_secs(120), "the run", || {
        words.iter().all(|word| common::is_alive(word))
    });
    measurer.kill().expect("killed");
    measurer.wait().expect("ended");
    within(Duration::from_secs(60), "their end", || {
        !words.iter().any(|word| common::is_alive(word))
    });
}

#[test]
fn a_killed_race_is_taken_up_and_loses_no_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("race");
    let lines = || {
        let journal = std::fs::read_to_string(place.join(journal::FILE_NAME));
        journal.map_or(0, |text| text.lines().count())
    };
    let mut killed = 0;
    for _ in 0..5 {
        let mut measurer = measurer(&place, 12, "sleep 0.02");
        let before = lines();
        within(Duration::from_secs(60), "three more runs", || {
            lines() >= before + 3 || measurer.try_wait().expect("a state").is_some()
        });
        if measurer.try_wait().expect("a state").is_some() {
            break;
        }
        measurer.kill().expect("killed");
        measurer.wait().expect("ended");
        killed += 1;
    }
    assert!(killed > 0, "the race was over before it could be killed");
    let status = measurer(&place, 12, "sleep 0.02").wait().expect("ended");
    assert!(status.success());
    let race = Race::resume_with(&common::launcher(), &place).expect("a race");
    assert_eq!((race.complete_rounds(), race.runs().len()), (12, 24));
    for (place, run) in race.runs().iter().enumerate() {
        assert_eq!(
            (run.round as usize, run.position as usize),
            (place / 2, place % 2)
        );
    }
    drop(race);
    assert_eq!(
        journal::unfinished(folder.path())
            .first()
            .map(|race| (race.runs, race.rounds)),
        Some((24, 12))
    );
}
