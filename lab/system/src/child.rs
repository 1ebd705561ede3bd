//! Child processes that may crash, hang, or take all memory: started in a group of their own,
//! limited, killed with everything that they started, and collected.

use std::io::{self, Read};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use heapdrome_schema::{Bytes, Ending};
use rustix::io::Errno;
use rustix::param::page_size;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process_group, set_parent_process_death_signal, waitid,
};

use crate::interrupt;

/// The usual time between two looks at a child.
const PAUSE: Duration = Duration::from_millis(20);

/// Maximum number of bytes that are kept of a pipe.
const MOST_OUTPUT: u64 = 64 << 20;

/// What a child may use, and how closely that is watched.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Wall time.
    pub time: Option<Duration>,
    /// Resident memory. It is read every few milliseconds, because a limit on address space would
    /// keep allocators that reserve much of it from working at all.
    pub memory: Option<Bytes>,
    /// The time between two looks, within which the child's end is known.
    pub pause: Duration,
}

impl Limits {
    /// No limit: the child ends by itself, or when the person asks for an end.
    pub const NONE: Self = Self {
        time: None,
        memory: None,
        pause: PAUSE,
    };

    /// A limit on wall time alone.
    pub const fn of_time(time: Duration) -> Self {
        Self {
            time: Some(time),
            ..Self::NONE
        }
    }
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By itself.
    Itself(ExitStatus),
    /// It was killed because its time or memory was used up.
    OverLimit,
}

/// Why nothing is known of a child.
#[derive(Debug)]
pub enum WaitError {
    /// The person asked for an end, and the child was killed.
    Interrupted,
    /// The kernel refused to wait.
    Io(io::Error),
}

/// Makes a command start in a process group of its own, without a terminal. [`wait`] kills that
/// group. A terminal's Ctrl-C does not reach it.
pub fn in_own_group(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).process_group(0)
}

/// Makes the kernel kill the child when its parent dies in whatever way.
pub fn dies_with_parent(command: &mut Command) -> &mut Command {
    let ask = || Ok(set_parent_process_death_signal(Some(Signal::KILL))?);
    // SAFETY: prctl is a system call without locks or memory of its own, safe between fork and
    // exec.
    unsafe { command.pre_exec(ask) }
}

/// Waits for a child that leads a process group, to its end or to that of its limits. Its group is
/// killed however it ended: a program that dies while its own child hangs leaves that child behind.
///
/// # Errors
/// When the flag is raised, or the kernel refuses to wait.
pub fn wait(child: &mut Child, limits: Limits, interrupt: &AtomicBool) -> Result<Ended, WaitError> {
    let seen = watch(child, limits, interrupt);
    // Reaped only after this, because reaping frees the number of its group.
    kill_group(child);
    let status = child.wait().map_err(WaitError::Io)?;
    Ok(match seen? {
        true => Ended::Itself(status),
        false => Ended::OverLimit,
    })
}

/// How a process ended that was waited for.
pub fn ending(status: ExitStatus) -> Ending {
    match status.code() {
        Some(code) => Ending::Exited(code),
        None => Ending::Killed(status.signal().unwrap_or_default()),
    }
}

/// Looks at a child until it ends (true) or is over a limit (false). It is neither killed nor
/// reaped.
///
/// # Errors
/// When the flag is raised, or the kernel refuses to wait.
pub fn watch(child: &Child, limits: Limits, interrupt: &AtomicBool) -> Result<bool, WaitError> {
    let started = Instant::now();
    loop {
        if has_ended(child).map_err(WaitError::Io)? {
            return Ok(true);
        }
        if interrupt::raised(interrupt) {
            return Err(WaitError::Interrupted);
        }
        let too_long = limits.time.is_some_and(|most| started.elapsed() > most);
        let too_large = |most| resident(child).is_some_and(|now| now > most);
        if too_long || limits.memory.is_some_and(too_large) {
            return Ok(false);
        }
        std::thread::sleep(limits.pause);
    }
}

/// Reads a pipe to its end in a thread, so that a child never waits for its reader.
pub fn collect(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(pipe) = pipe {
            // What was read until an error is all that there is.
            let _ = pipe.take(MOST_OUTPUT).read_to_end(&mut bytes);
        }
        bytes
    })
}

/// The last line of a text that is not empty.
pub fn last_line(text: &str) -> Option<&str> {
    let mut lines = text.lines().rev().map(str::trim);
    lines.find(|line| !line.is_empty())
}

/// The child's resident memory; `None` once it has ended.
fn resident(child: &Child) -> Option<Bytes> {
    let text = std::fs::read_to_string(format!("/proc/{}/statm", child.id())).ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(Bytes(pages * page_size() as u64))
}

/// Whether the child has ended; it is not reaped.
fn has_ended(child: &Child) -> io::Result<bool> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    match waitid(WaitId::Pid(Pid::from_child(child)), options) {
        Ok(ended) => Ok(ended.is_some()),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn kill_group(child: &Child) {
    // It is the child's own, since that was started with process_group(0), and its number is not
    // reused before the child is waited for.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
}

#[cfg(test)]
mod tests;
