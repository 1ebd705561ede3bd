//! Tests of the search for interrupted races, of races that are running or cannot be resumed, and
//! of a resumed race whose last journal line was cut short.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use heapdrome_engine::Engine;
use heapdrome_engine::failure::Failure;
use heapdrome_engine::race::{Contest, Interrupted, LATEST, Origin, find, kept, refuse_old_sweep};
use heapdrome_measure::launcher::Simulation;
use heapdrome_schema::{JournalLine, Part, Plan};

use crate::support::{self, Site, done, end, ran};

const ROUNDS: u32 = 6;
/// Number of timed runs of the baseline, its twin and a rival in the whole race.
const RUNS: usize = 18;

/// Opens an engine that is interrupted after `most` runs.
fn interrupted_after(site: &Site, most: usize) -> Engine {
    let runs = AtomicUsize::new(0);
    let engine = site.engine(Simulation::new(|_| end("")));
    let flag = Arc::clone(&engine.interrupt);
    engine.simulated(Simulation::new(move |_| {
        if runs.fetch_add(1, Ordering::Relaxed) + 1 == most {
            flag.store(true, Ordering::Relaxed);
        }
        end("")
    }))
}

/// Interrupts a race in its second round, and returns an engine that can resume the race.
fn interrupted(site: &Site) -> Engine {
    let engine = interrupted_after(site, 4);
    let plan = support::plan(
        &[("sound", "sound")],
        support::options(),
        support::rounds(ROUNDS),
    );
    let (_, ended) = ran(Contest::start(&engine, plan));
    assert!(matches!(ended, Err(Failure::Interrupted)));
    site.engine(Simulation::new(|_| end("")))
}

fn runs_in(journal: &str) -> usize {
    let is_run = |line: &&str| line.starts_with("{\"line\":\"run\"");
    journal.lines().filter(is_run).count()
}

/// Returns the reason why the race or sweep called `name` is not resumed.
fn refused(name: &str, engine: &Engine) -> String {
    match find(name, false, engine, origin) {
        Err(Failure::Usage(why)) => why,
        Err(other) => panic!("{other}"),
        Ok(Interrupted::Race(folder)) => {
            let contest =
                Contest::resume(&folder, engine).unwrap_or_else(|error| panic!("{error}"));
            let refused = refuse_old_sweep(&contest, origin);
            refused.expect_err("it is refused").to_string()
        }
        Ok(Interrupted::Sweep(whole)) => panic!("{} goes on", whole.name),
    }
}

/// Determines the origin like the command line, as far as these tests need it.
fn origin(asked: &[String]) -> Origin {
    match asked.iter().any(|word| word == "--sweep") {
        true => Origin::Sweep,
        false => Origin::Race,
    }
}

#[test]
fn a_line_that_was_cut_short_is_run_again() {
    let site = Site::new();
    let engine = interrupted(&site);
    let whole = site.journal();
    assert!(runs_in(&whole) < RUNS, "it was interrupted before its end");
    let cut = format!("{whole}{{\"line\":\"run\",\"rou");
    std::fs::write(site.folder().join("journal.jsonl"), cut).expect("written");
    let result = done(ran(Contest::resume(&site.folder(), &engine)));
    assert_eq!(result.rounds, ROUNDS);
    assert!(support::shown(&result).contains("6 rounds"));
    let after = site.journal();
    assert!(after.starts_with(&whole), "what was on disk stays there");
    assert_eq!(runs_in(&after), RUNS, "each run once");
    let is_whole = |line: &str| serde_json::from_str::<JournalLine>(line).is_ok();
    assert!(after.lines().all(is_whole), "nothing of the cut line stays");
    assert!(refused(LATEST, &engine).contains("no unfinished race"));
}

/// Creates another unfinished race, called `name`: its journal is a copy of `journal` with a
/// changed plan.
fn another(first: &std::path::Path, journal: &str, name: &str, change: impl Fn(&mut Plan)) {
    let (plan, rest) = journal.split_once('\n').expect("lines");
    let mut line: JournalLine = serde_json::from_str(plan).expect("a plan");
    let JournalLine::Plan { plan, .. } = &mut line else {
        panic!("{plan}");
    };
    change(plan);
    let folder = first.with_file_name(name);
    std::fs::create_dir(&folder).expect("a folder");
    let line = serde_json::to_string(&line).expect("JSON");
    std::fs::write(folder.join("journal.jsonl"), format!("{line}\n{rest}")).expect("written");
}

/// Returns an interrupted race: its engine, its folder, its name and its journal.
fn unfinished(site: &Site) -> (Engine, std::path::PathBuf, String, String) {
    let engine = interrupted(site);
    let folder = site.folder();
    let name = folder.file_name().expect("a name").to_string_lossy();
    let name = name.into_owned();
    (engine, folder, name, site.journal())
}

#[test]
fn a_stored_race_that_is_running_is_refused_and_not_unknown() {
    let site = Site::new();
    let (engine, folder, name, _) = unfinished(&site);
    let rounds = |name: &str| {
        let found = kept(name, &engine, origin).unwrap_or_else(|error| panic!("{error}"));
        found.map(|result| result.rounds)
    };
    assert_eq!([rounds(&name), rounds(LATEST)], [Some(1), Some(1)]);
    assert_eq!(rounds("none"), None);
    let running = Contest::resume(&folder, &engine);
    let refused = kept(&name, &engine, origin).expect_err("it is running");
    assert!(
        refused.to_string().contains("another heapdrome"),
        "{refused}"
    );
    assert_eq!(rounds(LATEST), None);
    drop(running);
    assert_eq!(rounds(&name), Some(1));
}

#[test]
fn names_of_unfinished_races_are_told_the_newest_first_and_a_sweep_is_one() {
    let site = Site::new();
    let (engine, folder, oldest, journal) = unfinished(&site);
    // The order of writing differs from the order of the names and from that of the years.
    for (name, year) in [("b", 2091), ("a", 2090), ("c", 2092)] {
        another(&folder, &journal, name, |plan| {
            plan.started = format!("{year}-01-01T00:00:00Z");
        });
    }
    for cell in ["n=1", "n=2"] {
        another(&folder, &journal, cell, |plan| {
            plan.started = "2089-01-01T00:00:00Z".to_owned();
            plan.part = Some(Part {
                of: "swept".to_owned(),
                cell: cell.to_owned(),
            });
        });
    }
    let told = refused("none", &engine);
    let names = format!("unfinished are: c, b, a, swept, {oldest}");
    assert!(told.contains("no such race: none"), "{told}");
    assert!(told.contains(&names), "{told}");
}

#[test]
fn a_race_of_a_sweep_that_an_older_heapdrome_ran_is_refused() {
    let site = Site::new();
    let (engine, folder, earlier, journal) = unfinished(&site);
    another(&folder, &journal, "old", |plan| {
        let asked = ["race", "--sweep", "n=1,2", "--", "true", "{n}"];
        plan.asked = asked.map(str::to_owned).to_vec();
    });
    let of_sweep = "old is one race of a sweep that an older heapdrome ran";
    let again = "run it again: heapdrome race --sweep";
    let told = refused("old", &engine);
    assert!(told.contains(of_sweep) && told.contains(again), "{told}");
    let told = refused(LATEST, &engine);
    let by_name = format!("--resume {earlier}");
    for words in [of_sweep, &by_name, again] {
        assert!(told.contains(words), "{words} in: {told}");
    }
}
