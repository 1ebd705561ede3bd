//! An engine in a temporary folder, which records its events, and races of simulated commands
//! there.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use heapdrome_engine::Engine;
use heapdrome_engine::event::{Event, Sink};
use heapdrome_engine::failure::Failure;
use heapdrome_engine::folders::Folders;
use heapdrome_engine::race::{Contest, Ended, usual_options};
use heapdrome_measure::launcher::{SimulatedEnd, SimulatedRun, Simulation};
use heapdrome_report::{Exporter, Terminal};
use heapdrome_schema::{
    Bytes, Ending, Entrant, EntrantResult, Options, Plan, RaceResult, Role, Stopping,
};

/// Recorded events, each as text.
#[derive(Clone, Default)]
pub struct Told(Rc<RefCell<Vec<String>>>);

impl Told {
    /// Returns whether some event contains all these words.
    pub fn holds(&self, words: &[&str]) -> bool {
        let events = self.0.borrow();
        events
            .iter()
            .any(|event| words.iter().all(|word| event.contains(word)))
    }

    /// Returns the text of all events.
    pub fn text(&self) -> String {
        self.0.borrow().join("\n")
    }
}

impl Sink for Told {
    fn event(&self, event: Event<'_>) {
        self.0.borrow_mut().push(format!("{event:?}"));
    }
}

/// Returns a new engine that works in folders below `root` and records its events in `told`.
pub fn engine(root: &Path, told: &Told) -> Engine {
    let folders = Folders::below(root).unwrap_or_else(|error| panic!("{error}"));
    Engine::apart(folders, told.clone())
}

/// Returns options without proofs and memory runs, because those need processes.
pub fn options() -> Options {
    Options {
        unproven: true,
        memory_runs: 0,
        ..usual_options()
    }
}

/// Returns the end of a command that takes a tenth of a second and prints `stdout`.
pub fn end(stdout: impl Into<String>) -> SimulatedEnd {
    SimulatedEnd {
        wall: Duration::from_millis(100),
        user: Duration::from_millis(90),
        peak: Bytes(1 << 20),
        ending: Ending::Exited(0),
        stdout: stdout.into(),
    }
}

/// Variable by which the simulated command recognises its rival.
const RIVAL: &str = "RIVAL";

/// Returns the setting of the running rival; `None` for the baseline, its twin, and commands such
/// as `--prepare`.
pub fn rival(run: &SimulatedRun) -> Option<&str> {
    run.environment.get(RIVAL).map(String::as_str)
}

/// Returns whether a run is of a shell command such as `--prepare`, and not of the race's own
/// command.
pub fn is_hook(run: &SimulatedRun) -> bool {
    run.words[0] == "/bin/sh"
}

/// Plans a race of the baseline, its twin, and `rivals`, which are pairs of a name and a setting.
pub fn plan(rivals: &[(&str, &str)], options: Options, stopping: Stopping) -> Plan {
    let entrant = |name: &str, role: Role| Entrant {
        name: name.to_owned(),
        role,
        ..Entrant::default()
    };
    let mut entrants = vec![
        entrant("system", Role::Baseline),
        entrant("system (again)", Role::Twin),
    ];
    entrants.extend(rivals.iter().map(|(name, says)| Entrant {
        settings: [(RIVAL.to_owned(), (*says).to_owned())].into(),
        ..entrant(name, Role::Rival)
    }));
    Plan {
        command: vec!["true".to_owned()],
        asked: vec!["race".to_owned()],
        started_in: std::env::current_dir().expect("a folder"),
        started: "2026-11-23T12:00:00Z".to_owned(),
        entrants,
        seed: 7,
        options,
        stopping,
        alpha: 0.05,
        ..Plan::default()
    }
}

/// Returns conditions under which a race ends after exactly `rounds` rounds.
pub fn rounds(rounds: u32) -> Stopping {
    Stopping {
        min_rounds: rounds,
        max_rounds: rounds,
        ..Stopping::default()
    }
}

/// A temporary folder for a race, and the events of the races there.
pub struct Site {
    root: tempfile::TempDir,
    pub told: Told,
}

impl Site {
    pub fn new() -> Self {
        Self {
            root: tempfile::tempdir().expect("a folder"),
            told: Told::default(),
        }
    }

    /// Opens an engine that works in this folder and replaces commands by `simulation`.
    pub fn engine(&self, simulation: Simulation) -> Engine {
        engine(self.root.path(), &self.told).simulated(simulation)
    }

    /// Runs a race to its end in this folder.
    pub fn race(&self, plan: Plan, simulation: Simulation) -> (RaceResult, Result<Ended, Failure>) {
        ran(Contest::start(&self.engine(simulation), plan))
    }

    /// Returns the folder of the only race.
    pub fn folder(&self) -> PathBuf {
        let engine = engine(self.root.path(), &self.told);
        let races = std::fs::read_dir(&engine.folders.races).expect("races");
        let folders: Vec<_> = races.flatten().map(|race| race.path()).collect();
        assert_eq!(folders.len(), 1, "{folders:?}");
        folders[0].clone()
    }

    /// Returns the journal of the only race.
    pub fn journal(&self) -> String {
        std::fs::read_to_string(self.folder().join("journal.jsonl")).expect("a journal")
    }
}

/// Runs a race to its end.
pub fn ran(contest: Result<Contest, Failure>) -> (RaceResult, Result<Ended, Failure>) {
    let mut contest = contest.unwrap_or_else(|error| panic!("{error}"));
    let ended = contest.run();
    (contest.result(&ended), ended)
}

/// Returns the result of a race that completed.
#[track_caller]
pub fn done((result, ended): (RaceResult, Result<Ended, Failure>)) -> RaceResult {
    assert!(matches!(ended, Ok(Ended::Done(_))), "{}", result.ended);
    result
}

/// Returns the row of an entrant.
#[track_caller]
pub fn row<'a>(result: &'a RaceResult, name: &str) -> &'a EntrantResult {
    let mut rows = result.entrants.iter();
    rows.find(|row| row.allocator == name).expect("a row")
}

/// Returns the number of timed runs of a row.
pub fn samples(row: &EntrantResult) -> usize {
    row.wall_s.as_ref().map_or(0, |wall| wall.samples.len())
}

/// Returns the terminal's text for a result, in one line.
pub fn shown<R>(result: &R) -> String
where
    Terminal: Exporter<R>,
{
    let terminal = Terminal {
        width: 1000,
        colour: false,
    };
    let text = terminal.export(result).expect("a text");
    let text = String::from_utf8(text).expect("UTF-8");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
