//! Tests the resumption of races.

mod common;

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use common::{plan, round, shell_plan, start, within, word_of};
use heapdrome_measure::{Interrupt, MeasureError, Race, journal};
use heapdrome_schema::{JournalLine, Stopping};

#[test]
fn an_interrupt_kills_the_run_and_the_race_can_be_resumed() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = "test -e fast || { touch started; sleep 73.25; }";
    let mut race = start(&shell_plan(script, folder.path()), folder.path()).expect("a race");
    let interrupt = Interrupt::default();
    let raised = interrupt.clone();
    let started = folder.path().join("started");
    let raiser = std::thread::spawn(move || {
        within(Duration::from_secs(120), "the run", || started.exists());
        raised.store(true, Ordering::Relaxed);
    });
    let error = race
        .next_round(&mut |_| {}, &interrupt)
        .expect_err("interrupted");
    raiser.join().expect("raised");
    assert!(matches!(error, MeasureError::Interrupted));
    assert!(!common::is_alive("73.25") && race.runs().is_empty());
    race.cleanup().expect("still possible");
    let place = race.folder().to_owned();
    drop(race);
    std::fs::write(folder.path().join("fast"), "").expect("written");
    let mut race = Race::resume_with(&common::launcher(), &place).expect("resumed");
    round(&mut race).expect("a round");
    assert_eq!((race.complete_rounds(), race.failures().len()), (1, 0));
}

#[test]
fn a_half_done_round_is_taken_up_where_it_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut race = start(&plan(&["true"], folder.path()), folder.path()).expect("a race");
    round(&mut race).expect("a round");
    round(&mut race).expect("a round");
    let whole = race.runs().to_vec();
    let place = race.folder().to_owned();
    assert!(
        Race::resume_with(&common::launcher(), &place).is_err(),
        "the race is still open"
    );
    drop(race);
    cut_to(&place, 5);
    let mut race = Race::resume_with(&common::launcher(), &place).expect("resumed");
    assert_eq!((race.complete_rounds(), race.runs()), (1, &whole[..4]));
    let mut words = Vec::new();
    race.next_round(
        &mut |event| words.push(word_of(event)),
        &Interrupt::default(),
    )
    .expect("a round");
    assert_eq!(words[0], "round 1 with 2");
    let key = |run: &heapdrome_schema::Run| {
        (
            run.round,
            run.position,
            run.entrant,
            run.environment_padding,
        )
    };
    let keys: Vec<_> = race.runs().iter().map(key).collect();
    assert_eq!(keys, whole.iter().map(key).collect::<Vec<_>>());
    race.record(JournalLine::Finished {
        reason: "all rounds".into(),
    })
    .expect("recorded");
    drop(race);
    let race = Race::resume_with(&common::launcher(), &place).expect("resumed");
    assert_eq!(race.finished(), Some("all rounds"));
}

#[test]
fn other_limits_take_the_place_of_the_plans_and_of_the_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut race = start(&plan(&["true"], folder.path()), folder.path()).expect("a race");
    let reason = "all rounds".to_owned();
    let stopping = Stopping {
        max_rounds: 9,
        ..race.plan().stopping.clone()
    };
    let limits = JournalLine::Limits {
        stopping: stopping.clone(),
    };
    for line in [JournalLine::Finished { reason }, limits] {
        race.record(line).expect("recorded");
    }
    let place = race.folder().to_owned();
    drop(race);
    let race = Race::resume_with(&common::launcher(), &place).expect("resumed");
    assert_eq!(race.finished(), None);
    assert_eq!(race.plan().stopping, stopping);
}

/// Keeps the first `lines` lines of a journal, and half of the next line.
fn cut_to(folder: &Path, lines: usize) {
    let path = folder.join(journal::FILE_NAME);
    let text = std::fs::read_to_string(&path).expect("a journal");
    let mut kept: String = text.split_inclusive('\n').take(lines).collect();
    let next = text.split_inclusive('\n').nth(lines).expect("another line");
    kept.push_str(&next[..next.len() / 2]);
    std::fs::write(&path, kept).expect("written");
}

#[test]
fn the_working_folder_may_come_back_after_a_race_is_resumed() {
    let folder = tempfile::tempdir().expect("a folder");
    let work = folder.path().join("work");
    std::fs::create_dir(&work).expect("a folder");
    let mut plan = plan(&["./program"], folder.path());
    plan.options.directory = Some("work".into());
    plan.options.cleanup = Some("true".into());
    let make = || std::os::unix::fs::symlink("/bin/true", work.join("program"));
    make().expect("a program");
    let mut race = start(&plan, folder.path()).expect("a race");
    round(&mut race).expect("a round");
    let place = race.folder().to_owned();
    drop(race);
    std::fs::remove_dir_all(&work).expect("removed");

    let mut race = Race::resume_with(&common::launcher(), &place).expect("resumed");
    let missing = "cannot use the working folder";
    let interrupt = Interrupt::default();
    let told = |error: MeasureError| error.to_string().contains(missing);
    assert!(race.setup(&interrupt).is_err_and(told));
    assert!(race.cleanup().is_err_and(told));
    assert!(round(&mut race).is_err_and(told));
    std::fs::create_dir(&work).expect("a folder");
    assert!(matches!(
        round(&mut race),
        Err(MeasureError::CommandNotFound { .. })
    ));
    make().expect("a program");
    round(&mut race).expect("a round");
    race.cleanup().expect("cleaned up");
    assert_eq!((race.complete_rounds(), race.failures().len()), (2, 0));
}

/// A decided entrant runs no further rounds, even after an interruption. Rounds are complete
/// without it.
#[test]
fn who_is_decided_stays_so_when_the_race_is_resumed() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut race = start(&plan(&["true"], folder.path()), folder.path()).expect("a race");
    round(&mut race).expect("a round");
    let line = JournalLine::Decided {
        entrant: 1,
        rounds: 1,
        because: "a target is reached".to_owned(),
    };
    race.record(line).expect("recorded");
    assert_eq!((race.complete_rounds(), race.runs().len()), (1, 3));
    assert!(race.counts(1) && !race.is_racing(1));
    round(&mut race).expect("a round");
    let place = race.folder().to_owned();
    drop(race);
    // Six lines: the plan, three runs, the decision, and one run of the second round.
    cut_to(&place, 6);
    let mut race = Race::resume_with(&common::launcher(), &place).expect("resumed");
    assert_eq!((race.complete_rounds(), race.runs().len()), (1, 4));
    round(&mut race).expect("the rest of the round");
    round(&mut race).expect("a round");
    assert_eq!((race.complete_rounds(), race.decided()[&1]), (3, 1));
    assert!(race.counts(1) && !race.is_racing(1) && race.failures().is_empty());
    let of = |entrant| race.runs().iter().filter(move |run| run.entrant == entrant);
    assert_eq!([0, 1, 2].map(|entrant| of(entrant).count()), [3, 1, 3]);
    let mut second: Vec<u32> = race
        .runs()
        .iter()
        .filter(|run| run.round == 1)
        .map(|run| run.position)
        .collect();
    second.sort_unstable();
    assert_eq!(second, [0, 1]);
}
