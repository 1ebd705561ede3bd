//! The measurer measured: what it adds to what it reads.

use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use heapdrome_schema::{Bytes, Entrant, Machine, Nanoseconds, Plan, Role, Run, Stopping};

use crate::launcher::{LauncherProgram, child_usage};
use crate::{Interrupt, MeasureError, Race};

/// How much memory the measurer holds while `/bin/true` runs.
const HELD: usize = 400 << 20;
/// What does nothing.
const TRUE: &str = "/bin/true";

/// What `/bin/true` seemed to need while heapdrome held much memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResidentOfTrue {
    /// The resident memory that heapdrome held meanwhile, beside its own.
    pub held: Bytes,
    /// The peak that a child of heapdrome itself reads: it inherits what heapdrome holds.
    pub read_directly: Bytes,
    /// The peak that a child of the launcher reads.
    pub read: Bytes,
}

/// Touches 400 MiB, runs `/bin/true` through a launcher meanwhile, and reads its peak.
///
/// # Errors
/// When the launcher or `/bin/true` cannot be started, or a temporary folder cannot be written.
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

/// What a run costs beside the command itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overhead {
    /// How many runs of `/bin/true` were made.
    pub runs: u32,
    /// The median wall time that was measured for them.
    pub measured: Nanoseconds,
    /// The median time that a whole run took, from deciding on it until it was on disk.
    pub whole: Nanoseconds,
}

/// Runs `/bin/true` as often as asked, each run as in a race: checked, journalled, synced.
///
/// # Errors
/// As [`resident_of_true`].
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

/// The peak of a `/bin/true` that this process starts itself.
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

/// Races `/bin/true` alone, and says for each run how long all of it took.
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
