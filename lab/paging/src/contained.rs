//! Any command under a limit: how it ends, how long it takes, and what the kernel counted.

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

/// How often it is asked whether the command has ended; a run's time is known no better.
const TICK: Duration = Duration::from_millis(1);
/// Bytes of standard error that are kept.
const TAIL: usize = 4096;

/// A command to be run.
#[derive(Clone, Debug)]
pub struct Task {
    /// The program and its arguments.
    pub words: Vec<OsString>,
    /// Its whole environment.
    pub environment: BTreeMap<OsString, OsString>,
    /// After this it is killed with all that it has started.
    pub timeout: Duration,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With status 0, and nothing was killed for memory.
    Finished,
    /// The kernel killed so many of its processes for memory, whatever its status was then.
    OutOfMemory(u64),
    /// It took longer than it may, and was killed.
    TooLong,
    /// For another reason, in one line.
    Failed(String),
}

/// A run.
#[derive(Clone, Debug)]
pub struct Contained {
    /// How it ended.
    pub ended: Ended,
    /// How long it took.
    pub wall: Duration,
    /// What was counted in its group.
    pub tally: Tally,
}

/// Runs a task to its end in a group of its own. What it leaves running is killed.
///
/// # Errors
/// When it cannot be started, someone interrupts, or its processes cannot be killed.
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
    // Everything in the group is dead now, the child with it.
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
    // SAFETY: between fork and exec it makes system calls only, with strings that were made before.
    unsafe { command.pre_exec(prepare) };
    command.spawn().map_err(|error| {
        let program = program.to_string_lossy();
        Error::Command(format!("{program} cannot be started: {error}"))
    })
}

fn door(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// Puts this process into the group whose list of processes this is.
fn enter(door: &CString) -> io::Result<()> {
    let file = open(door, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    // Zero is the process that writes.
    rustix::io::write(file, b"0")?;
    Ok(())
}

fn unwatched(error: WaitError) -> Error {
    match error {
        WaitError::Interrupted => Error::Interrupted,
        WaitError::Io(error) => Error::Command(format!("cannot be waited for: {error}")),
    }
}

/// The end of what a pipe gives.
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
