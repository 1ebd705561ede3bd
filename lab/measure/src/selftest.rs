//! Self-test of the measurer: its effect on its own measurements.

use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use heapdrome_schema::{Bytes, Entrant, Machine, Nanoseconds, Plan, Role, Run, Stopping};

use crate::launcher::{LauncherProgram, child_usage};
use crate::{Interrupt, MeasureError, Race};

/// Number of bytes that the measurer holds while `/bin/true` runs.
const HELD: usize = 400 << 20;
const TRUE: &str = "/bin/true";

/// Measured peak memory of `/bin/true` while heapdrome holds much memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResidentOfTrue {
    /// Memory that heapdrome held during the run, in addition to its usual memory.
    pub held: Bytes,
    /// Measured peak of a direct child of heapdrome, which inherits heapdrome's own peak.
    pub read_directly: Bytes,
    /// Measured peak of a child of the launcher.
    pub read: Bytes,
}

/// Touches a large amount of memory and holds it while `/bin/true` runs twice: as a direct child,
/// and through a launcher. Returns both measured peaks.
///
/// # Errors
/// Returns an error if the launcher cannot be started, `/bin/true` cannot be started or fails, or a
/// temporary folder cannot be written.
pub fn resident_of_true(launcher: &LauncherProgram) -> Result<ResidentOfTrue, MeasureError> {
    let ballast = black_box(vec![1_u8; HELD]);
    let read_directly = direct_child()?;
    let (run, _) = run_true(launcher, 1)?.remove(0);
    Ok(ResidentOfTrue {
        held: Bytes(ballast.len() as u64),
        read_directly,
        read: run.peak_rss,
    })
}

/// Wall times that show how much a run costs in addition to the command itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overhead {
    /// Number of runs of `/bin/true`.
    pub runs: u32,
    /// Median of the measured wall times.
    pub measured: Nanoseconds,
    /// Median duration of a whole run, from heapdrome's request until the run is on disk.
    pub whole: Nanoseconds,
}

/// Measures `runs` runs of `/bin/true`, but at least one. Each run is journalled and synced, as in
/// a race.
///
/// # Errors
/// See [`resident_of_true`].
pub fn overhead(launcher: &LauncherProgram, runs: u32) -> Result<Overhead, MeasureError> {
    let all = run_true(launcher, runs.max(1))?;
    let measured = median(all.iter().map(|(run, _)| run.wall));
    Ok(Overhead {
        runs: runs.max(1),
        measured,
        whole: median(all.iter().map(|pair| pair.1)),
    })
}

fn median(spans: impl Iterator<Item = Nanoseconds>) -> Nanoseconds {
    let mut spans: Vec<_> = spans.collect();
    spans.sort_unstable();
    spans.get(spans.len() / 2).copied().unwrap_or_default()
}

/// Measures the peak of `/bin/true` as a direct child of this process.
fn direct_child() -> Result<Bytes, MeasureError> {
    let failed = |error: std::io::Error| MeasureError::NotExecutable {
        command: TRUE.to_owned(),
        reason: error.to_string(),
    };
    let child = Command::new(TRUE)
        .stdin(Stdio::null())
        .spawn()
        .map_err(failed)?;
    child_usage(child.id())
        .map(|usage| usage.peak_rss)
        .map_err(failed)
}

/// Races `/bin/true` alone, and returns each run with its total duration.
fn run_true(
    launcher: &LauncherProgram,
    rounds: u32,
) -> Result<Vec<(Run, Nanoseconds)>, MeasureError> {
    let folder = tempfile::tempdir().map_err(|source| MeasureError::Scratch {
        path: std::env::temp_dir(),
        source,
    })?;
    let mut race = Race::start_with(launcher, plan(), Machine::default(), folder.path())?;
    let mut all = Vec::new();
    for _ in 0..rounds {
        let started = Instant::now();
        race.next_round(&mut |_| {}, &Interrupt::default())?;
        let whole = started.elapsed().into();
        let Some(run) = race.runs().last() else {
            return Err(MeasureError::NotExecutable {
                command: TRUE.to_owned(),
                reason: "it fails".to_owned(),
            });
        };
        all.push((run.clone(), whole));
    }
    Ok(all)
}

fn plan() -> Plan {
    Plan {
        command: vec![TRUE.to_owned()],
        started_in: Path::new("/").to_owned(),
        entrants: vec![Entrant {
            name: "system".to_owned(),
            role: Role::Baseline,
            ..Entrant::default()
        }],
        stopping: Stopping {
            min_rounds: 1,
            max_rounds: 1,
            ..Stopping::default()
        },
        alpha: 0.05,
        ..Plan::default()
    }
}
