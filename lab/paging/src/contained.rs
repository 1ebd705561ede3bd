//! Runs any command under a limit, and reports the outcome, the duration and the kernel's counts of
//! each run.

use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use heapdrome_system::child::{self, Limits, WaitError};
use rustix::fs::{Mode, OFlags, open};

use crate::{Enclosure, Error, Tally};

/// Interval at which the lab checks whether the command has ended, and thus the resolution of its
/// duration.
const TICK: Duration = Duration::from_millis(1);
/// Maximum number of bytes of standard error that are kept. Earlier bytes are discarded.
const TAIL: usize = 4096;

/// A command to run.
#[derive(Clone, Debug)]
pub struct Task {
    /// The program and its arguments; not empty.
    pub words: Vec<OsString>,
    /// Complete environment of the command.
    pub environment: BTreeMap<OsString, OsString>,
    /// Time after which the command and all processes that it started are killed.
    pub timeout: Duration,
}

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The command exited with status 0 and without an OOM kill.
    Finished,
    /// The OOM killer killed this number of the command's processes. The exit status is ignored.
    OutOfMemory(u64),
    /// The command exceeded the time limit and was killed.
    TooLong,
    /// The command failed for another reason, which this line describes.
    Failed(String),
}

/// A finished run.
#[derive(Clone, Debug)]
pub struct Contained {
    /// Outcome of the run.
    pub ended: Ended,
    /// Wall time until the command ended or was killed.
    pub wall: Duration,
    /// The kernel's counts in the group of the run.
    pub tally: Tally,
}

/// Runs a task to its end in its own group, and then kills the processes that the task leaves
/// behind.
///
/// # Errors
/// When the task cannot be started or waited for, when it is interrupted, or when its processes
/// cannot be killed.
pub fn contain(
    task: &Task,
    enclosure: &Enclosure,
    interrupt: &AtomicBool,
) -> Result<Contained, Error> {
    let mut running = start(task, enclosure)?;
    let begin = Instant::now();
    let tail = running
        .stderr
        .take()
        .map(|pipe| std::thread::spawn(|| tail(pipe)));
    let limits = Limits {
        pause: TICK,
        ..Limits::of_time(task.timeout)
    };
    let waited = child::watch(&running, limits, interrupt);
    let wall = begin.elapsed();
    enclosure.empty()?;
    // Every process in the group is dead now, including the child.
    let status = running
        .wait()
        .map_err(|error| Error::Command(error.to_string()))?;
    let said = tail.map(|reader| reader.join().unwrap_or_default());
    let tally = enclosure.tally().unwrap_or_default();
    let ended = match (waited.map_err(unwatched)?, tally.oom_kills) {
        (_, Some(kills)) if kills > 0 => Ended::OutOfMemory(kills),
        (false, _) => Ended::TooLong,
        (true, _) if status.success() => Ended::Finished,
        (true, _) => Ended::Failed(ending(status, &said.unwrap_or_default())),
    };
    Ok(Contained { ended, wall, tally })
}

fn start(task: &Task, enclosure: &Enclosure) -> Result<Child, Error> {
    let program = task.words.first().cloned().unwrap_or_default();
    let mut command = Command::new(&program);
    command
        .args(&task.words[1..])
        .env_clear()
        .envs(&task.environment)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    child::dies_with_parent(child::in_own_group(&mut command));
    let doors = enclosure.join.iter().map(|path| door(path));
    let doors: Vec<CString> = doors
        .collect::<io::Result<_>>()
        .map_err(|error| Error::Command(format!("cannot be put into a control group: {error}")))?;
    let prepare = move || doors.iter().try_for_each(enter);
    // SAFETY: between fork and exec, `prepare` only makes system calls, on strings that were
    // allocated before the fork.
    unsafe { command.pre_exec(prepare) };
    command.spawn().map_err(|error| {
        let program = program.to_string_lossy();
        Error::Command(format!("{program} cannot be started: {error}"))
    })
}

fn door(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// Moves this process into the group whose process list is the file `door`.
fn enter(door: &CString) -> io::Result<()> {
    let file = open(door, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    // Zero stands for the writing process.
    rustix::io::write(file, b"0")?;
    Ok(())
}

fn unwatched(error: WaitError) -> Error {
    match error {
        WaitError::Interrupted => Error::Interrupted,
        WaitError::Io(error) => Error::Command(format!("cannot be waited for: {error}")),
    }
}

/// Reads a pipe until EOF or an error, and returns the last `TAIL` bytes.
fn tail(mut pipe: impl Read) -> String {
    let (mut kept, mut buffer) = (Vec::new(), [0; TAIL]);
    while let Ok(count @ 1..) = pipe.read(&mut buffer) {
        kept.extend_from_slice(&buffer[..count]);
        let surplus = kept.len().saturating_sub(TAIL);
        kept.drain(..surplus);
    }
    String::from_utf8_lossy(&kept).into_owned()
}

fn ending(status: ExitStatus, said: &str) -> String {
    match child::last_line(said) {
        Some(line) => format!("{status}: {line}"),
        None => status.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_long_output_is_kept() {
        let long = format!("{}last line\n", "x".repeat(3 * TAIL));
        let kept = tail(long.as_bytes());
        assert_eq!(kept.len(), TAIL);
        assert!(kept.ends_with("xlast line\n"));
    }

    #[test]
    fn a_group_that_cannot_be_entered_is_an_error() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let list = folder.path().join("cgroup.procs");
        assert!(enter(&door(&list).expect("a path")).is_err());
        std::fs::write(&list, "").expect("written");
        enter(&door(&list).expect("a path")).expect("a plain file takes it");
        assert_eq!(std::fs::read(&list).expect("read"), b"0");
    }
}
