//! Tests the runs of a race: environment, output, failures, time limits, pinning, changed
//! libraries, left-over processes, trials, and commands such as `--prepare`.

mod common;

use common::{plan, round, shell_plan, start, tool, word_of};
use heapdrome_measure::{Interrupt, MeasureError, journal, schedule};
use heapdrome_schema::{Better, Bytes, Ending, Metric, Nanoseconds};

#[test]
fn a_round_runs_each_entrant_once_and_is_on_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut race = start(&plan(&["true"], folder.path()), folder.path()).expect("a race");
    let mut words = Vec::new();
    let end = race.next_round(
        &mut |event| words.push(word_of(event)),
        &Interrupt::default(),
    );
    let end = end.expect("a round");
    assert_eq!((end.round, end.failed.len()), (0, 0));
    assert_eq!(
        words.join(", "),
        "round 0 with 3, start, end, start, end, start, end"
    );
    assert_eq!(race.complete_rounds(), 1);
    let mut entrants: Vec<_> = race.runs().iter().map(|run| run.entrant).collect();
    entrants.sort_unstable();
    assert_eq!(entrants, [0, 1, 2]);
    for (place, run) in race.runs().iter().enumerate() {
        assert_eq!((run.round, run.position as usize), (0, place));
        assert_eq!(run.ending, Ending::Exited(0));
        assert!(run.wall > Nanoseconds(0) && run.peak_rss > Bytes(0) && run.minor_faults > 0);
        assert!(run.environment_padding < 4096 && run.detached.is_empty());
    }
    let paddings: Vec<_> = race
        .runs()
        .iter()
        .map(|run| run.environment_padding)
        .collect();
    assert!(paddings.iter().any(|&padding| padding != paddings[0]));
    let text = std::fs::read_to_string(race.folder().join(journal::FILE_NAME)).expect("a journal");
    assert_eq!(text.lines().count(), 4);
}

#[test]
fn the_environment_is_the_entrants_and_its_length_varies() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = "echo \"$A $B ${#HEAPDROME_PAD} ${MALLOC_ARENA_MAX-none}\"; cat";
    let mut plan = shell_plan(script, folder.path());
    plan.entrants[2]
        .settings
        .insert("A".into(), "rival's".into());
    plan.options.environment = [("A", "plan's"), ("B", "b")]
        .map(|(n, v)| (n.into(), v.into()))
        .into();
    plan.options.metrics = vec![Metric {
        name: "pad".into(),
        pattern: r"plan's b (\d+) none\ninput".into(),
        better: Better::Lower,
    }];
    plan.options.stdin = Some("input file".into());
    std::fs::write(folder.path().join("input file"), "input").expect("written");
    let mut race = start(&plan, folder.path()).expect("a race");
    let mut words = Vec::new();
    race.next_round(
        &mut |event| words.push(word_of(event)),
        &Interrupt::default(),
    )
    .expect("a round");
    for run in race.runs() {
        let expected = (run.entrant != 2).then_some(f64::from(run.environment_padding));
        assert_eq!(run.metrics.get("pad").copied(), expected);
    }
    assert_eq!(
        words.iter().filter(|word| *word == "missing pad").count(),
        1
    );
}

#[test]
fn output_is_hashed_where_it_is_compared() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut plan = shell_plan("printf abc", folder.path());
    plan.options.compare_output = true;
    let mut race = start(&plan, folder.path()).expect("a race");
    round(&mut race).expect("a round");
    let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert!(
        race.runs()
            .iter()
            .all(|run| run.output.as_deref() == Some(expected))
    );
}

#[test]
fn an_entrant_that_crashes_leaves_and_the_others_go_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let tool = tool();
    let script = format!("test \"$A\" != bad || exec '{}' crash", tool.display());
    let mut plan = shell_plan(&script, folder.path());
    plan.entrants[2].settings.insert("A".into(), "bad".into());
    let mut race = start(&plan, folder.path()).expect("a race");
    let end = round(&mut race).expect("a round");
    assert_eq!(end.failed, [2]);
    let failure = &race.failures()[0];
    assert_eq!(
        (failure.entrant, failure.ending),
        (2, Ending::Killed(libc::SIGABRT))
    );
    assert_eq!(
        (failure.during.as_str(), failure.stderr_tail.as_str()),
        ("round 1", "about to crash")
    );
    assert!(!race.is_racing(2) && race.is_racing(0));
    assert_eq!((race.complete_rounds(), race.runs().len()), (1, 2));
    round(&mut race).expect("a round");
    assert_eq!((race.complete_rounds(), race.runs().len()), (2, 4));
}

#[test]
fn what_counts_as_failing_can_be_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut race = start(&shell_plan("exit 3", folder.path()), folder.path()).expect("a race");
    let end = round(&mut race).expect("a round");
    assert_eq!((end.failed.len(), race.failures().len()), (3, 3));
    assert!((0..3).all(|entrant| !race.is_racing(entrant)));
    round(&mut race).expect("an empty round");
    assert!(race.runs().is_empty());

    let mut plan = shell_plan("exit 3", folder.path());
    plan.options.success = vec![0, 3];
    let other = folder.path().join("other");
    let mut race = start(&plan, &other).expect("a race");
    round(&mut race).expect("a round");
    assert!((0..3).all(|entrant| race.is_racing(entrant)));
}

#[test]
fn a_failure_before_a_changed_library_is_not_forgotten() {
    let folder = tempfile::tempdir().expect("a folder");
    let library = |place: usize| folder.path().join(format!("data {place}, never loaded"));
    let mut plan = shell_plan("test ! -e bad", folder.path());
    // In the second round, the first entrant fails, and the library of the next entrant has
    // changed.
    let order = schedule::order(plan.seed, 1, 3);
    plan.entrants[order[1]].library = Some(library(1));
    std::fs::write(library(1), "one").expect("written");
    let mut race = start(&plan, folder.path()).expect("a race");
    round(&mut race).expect("a round");
    std::fs::write(library(1), "another").expect("written");
    std::fs::write(folder.path().join("bad"), "").expect("written");
    let error = round(&mut race).expect_err("changed");
    assert!(matches!(error, MeasureError::LibraryChanged { .. }));
    assert_eq!(race.failures().len(), 1);
    std::fs::remove_file(folder.path().join("bad")).expect("removed");
    race.accept_library(order[1]).expect("accepted");
    let end = round(&mut race).expect("the round goes on");
    assert_eq!((end.round, end.failed.as_slice()), (1, &order[..1]));
    assert_eq!(race.failures()[0].entrant, order[0]);
    let places: Vec<_> = race.runs()[3..].iter().map(|run| run.position).collect();
    assert_eq!(places, [1, 2], "the first place is that of the failed run");
}

#[test]
fn a_time_without_end_is_no_limit() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut plan = plan(&["true"], folder.path());
    plan.options.timeout = Some(Nanoseconds(u64::MAX));
    let mut race = start(&plan, folder.path()).expect("a race");
    round(&mut race).expect("a round");
    assert_eq!(race.complete_rounds(), 1);
}

#[test]
fn a_run_out_of_time_is_killed_with_its_tree() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut plan = shell_plan("sleep 71.25 & sleep 72.25", folder.path());
    plan.entrants.truncate(1);
    plan.options.timeout = Some(Nanoseconds(300_000_000));
    let mut race = start(&plan, folder.path()).expect("a race");
    round(&mut race).expect("a round");
    assert_eq!(race.failures()[0].ending, Ending::TimedOut);
    assert!(!common::is_alive("71.25") && !common::is_alive("72.25"));
}

#[test]
fn what_outlives_the_command_is_named_and_stopped() {
    let folder = tempfile::tempdir().expect("a folder");
    let tool = tool();
    let mut plan = plan(&[tool.to_str().expect("UTF-8"), "detach"], folder.path());
    plan.entrants.truncate(1);
    let mut race = start(&plan, folder.path()).expect("a race");
    round(&mut race).expect("a round");
    let name = tool
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    assert_eq!(race.runs()[0].detached, [&name[..name.len().min(15)]]);
    assert!(!common::is_alive("detach"));
}

#[test]
fn steps_run_in_order_and_their_failure_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut plan = shell_plan("echo run >>log", folder.path());
    plan.entrants.truncate(1);
    plan.options.setup = Some("echo setup >>log".into());
    plan.options.prepare = Some("echo prepare >>log".into());
    plan.options.check = Some("echo check >>log".into());
    plan.options.cleanup = Some("echo cleanup >>log; echo gone wrong >&2; exit 4".into());
    plan.options.warmup_rounds = 1;
    let interrupt = Interrupt::default();
    let mut race = start(&plan, folder.path()).expect("a race");
    race.setup(&interrupt).expect("setup");
    race.warm_up(&mut |_| {}, &interrupt).expect("a warm-up");
    assert!(race.runs().is_empty());
    round(&mut race).expect("a round");
    let error = race.cleanup().expect_err("cleanup fails").to_string();
    assert!(
        error.starts_with("the --cleanup command failed (exit status 4)"),
        "{error}"
    );
    assert!(error.ends_with(": gone wrong"), "{error}");
    let log = std::fs::read_to_string(folder.path().join("log")).expect("a log");
    let words: Vec<_> = log.lines().collect();
    assert_eq!(
        words.join(" "),
        "setup prepare run check prepare run check cleanup"
    );
}

#[test]
fn a_trial_leaves_no_trace_in_the_race() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = shell_plan("echo run >>log; test $(wc -l <log) -ne 2", folder.path());
    let mut race = start(&plan, folder.path()).expect("a race");
    let mut trial = || race.trial(0, &mut |_| {}, &Interrupt::default());
    assert!(trial().expect("it runs"));
    assert!(!trial().expect("it runs"), "the second run fails");
    assert!(race.runs().is_empty() && race.failures().is_empty());
    round(&mut race).expect("a round");
    assert_eq!(race.runs().len(), 3);
}

#[test]
fn a_wrong_result_is_a_failure() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut plan = plan(&["true"], folder.path());
    plan.options.check = Some("echo wrong sum >&2; exit 5".into());
    let mut race = start(&plan, folder.path()).expect("a race");
    round(&mut race).expect("a round");
    assert_eq!(race.failures()[0].ending, Ending::CheckFailed(5));
    assert_eq!(race.failures()[0].stderr_tail, "wrong sum");
}

#[test]
fn a_pinned_command_sees_its_cpus_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut plan = shell_plan(
        "nproc; grep Cpus_allowed_list /proc/self/status",
        folder.path(),
    );
    plan.options.pin = vec![0];
    plan.options.compare_output = true;
    let mut race = start(&plan, folder.path()).expect("a race");
    round(&mut race).expect("a round");
    let text = std::fs::read_to_string(race.folder().join("output/stdout")).expect("output");
    assert_eq!(text, "1\nCpus_allowed_list:\t0\n");
    let place = race.folder().to_owned();
    drop(race);
    assert!(!place.join("output").exists() && place.join(journal::FILE_NAME).exists());
}

#[test]
fn a_changed_library_stops_the_round_until_it_is_accepted() {
    let folder = tempfile::tempdir().expect("a folder");
    let library = folder.path().join("data, never loaded");
    std::fs::write(&library, "one").expect("written");
    let mut plan = plan(&["true"], folder.path());
    plan.entrants[2].library = Some(library.clone());
    let mut race = start(&plan, folder.path()).expect("a race");
    round(&mut race).expect("a round");
    std::fs::write(&library, "two").expect("written");
    let error = round(&mut race).expect_err("changed");
    assert!(
        matches!(error, MeasureError::LibraryChanged { entrant: 2, .. }),
        "{error}"
    );
    race.accept_library(2).expect("accepted");
    assert_eq!(round(&mut race).expect("the round goes on").round, 1);
    assert_eq!((race.complete_rounds(), race.runs().len()), (2, 6));
}

#[test]
fn the_measured_command_cannot_hurt_its_launcher() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut plan = shell_plan(
        "trap '' TERM; kill -TERM 0; exec 0<&- ; true",
        folder.path(),
    );
    plan.entrants.truncate(1);
    let mut race = start(&plan, folder.path()).expect("a race");
    round(&mut race).expect("a round");
    assert_eq!(race.complete_rounds(), 1);
}
