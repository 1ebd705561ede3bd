//! Helpers for the tests: plans, races, and a program with several test actions.

#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use heapdrome_measure::launcher::LauncherProgram;
use heapdrome_measure::{Event, Interrupt, MeasureError, Race, RoundEnd};
use heapdrome_schema::{Entrant, Machine, Nanoseconds, Options, Plan, Role, Stopping};

pub fn launcher() -> LauncherProgram {
    LauncherProgram::of(env!("CARGO_BIN_EXE_heapdrome-launcher"))
}

/// Creates a plan that runs `command` in `folder` under three entrants, each with the system's
/// allocator.
pub fn plan(command: &[&str], folder: &Path) -> Plan {
    let entrant = |name: &str, role| Entrant {
        name: name.to_owned(),
        role,
        version: "1".to_owned(),
        ..Entrant::default()
    };
    Plan {
        command: command.iter().map(|&word| word.to_owned()).collect(),
        started_in: folder.to_owned(),
        entrants: vec![
            entrant("system", Role::Baseline),
            entrant("system-again", Role::Twin),
            entrant("rival", Role::Rival),
        ],
        seed: 11,
        options: Options {
            timeout: Some(Nanoseconds(120_000_000_000)),
            ..Options::default()
        },
        stopping: Stopping {
            min_rounds: 1,
            max_rounds: 3,
            ..Stopping::default()
        },
        alpha: 0.05,
        ..Plan::default()
    }
}

pub fn shell_plan(script: &str, folder: &Path) -> Plan {
    plan(&["sh", "-c", script], folder)
}

pub fn start(plan: &Plan, folder: &Path) -> Result<Race, MeasureError> {
    Race::start_with(
        &launcher(),
        plan.clone(),
        Machine::default(),
        &folder.join("race"),
    )
}

pub fn round(race: &mut Race) -> Result<RoundEnd, MeasureError> {
    race.next_round(&mut |_| {}, &Interrupt::default())
}

/// Returns a short text for an event.
pub fn word_of(event: Event<'_>) -> String {
    match event {
        Event::WarmupStarted { round, of } => format!("warmup {round} of {of}"),
        Event::RoundStarted { round, runs } => format!("round {round} with {runs}"),
        Event::Preparing { .. } => "prepare".to_owned(),
        Event::RunStarted { .. } => "start".to_owned(),
        Event::RunEnded(_) => "end".to_owned(),
        Event::MetricMissing { name, .. } => format!("missing {name}"),
        Event::EntrantFailed(failure) => format!("failed {}", failure.entrant),
        Event::MemoryRunStarted { .. } => "memory start".to_owned(),
        Event::MemoryRunEnded(_) => "memory end".to_owned(),
    }
}

/// Returns the path of a program with several test actions. It is built once for each test program.
pub fn tool() -> PathBuf {
    static TOOL: OnceLock<PathBuf> = OnceLock::new();
    TOOL.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let path = folder.join(concat!("tool-", env!("CARGO_CRATE_NAME")));
        let fresh = tempfile::Builder::new()
            .tempfile_in(folder)
            .expect("a file")
            .into_temp_path();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tool.c");
        let built = Command::new("cc")
            .args(["-O1", "-o"])
            .arg(&fresh)
            .arg(source)
            .status();
        assert!(built.expect("a C compiler").success());
        fresh.persist(&path).expect("a file beside it");
        path
    })
    .clone()
}

/// Waits until `holds` returns true, and fails after `limit`.
pub fn within(limit: Duration, what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + limit;
    while !holds() {
        assert!(Instant::now() < end, "{what}: not within {limit:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns whether any process has `word` among its arguments.
pub fn is_alive(word: &str) -> bool {
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    processes.into_iter().any(|process| {
        let text = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        text.split(|&byte| byte == 0)
            .any(|argument| argument == word.as_bytes())
    })
}
