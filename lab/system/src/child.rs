//! Child processes that may crash, hang, or exhaust memory. Each leads its own process group and
//! may have limits. [`wait`] kills the whole group when the child ends or exceeds a limit, or when
//! the user interrupts heapdrome.

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

/// Default interval between two checks of a child.
const PAUSE: Duration = Duration::from_millis(20);

/// Maximum number of bytes kept from a pipe.
const MOST_OUTPUT: u64 = 64 << 20;

/// Resource limits of a child, and the interval at which they are checked.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Limit of wall time.
    pub time: Option<Duration>,
    /// Limit of the child's own resident memory, without its descendants. A limit on address space
    /// is not used, because allocators that reserve much address space could not run under it.
    pub memory: Option<Bytes>,
    /// Interval between two checks, and thus the maximum delay in noticing the child's end.
    pub pause: Duration,
}

impl Limits {
    /// No limits: the child ends by itself, or when the user interrupts heapdrome.
    pub const NONE: Self = Self {
        time: None,
        memory: None,
        pause: PAUSE,
    };

    /// Returns limits that restrict only wall time.
    pub const fn of_time(time: Duration) -> Self {
        Self {
            time: Some(time),
            ..Self::NONE
        }
    }
}

/// Way in which a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The child ended by itself.
    Itself(ExitStatus),
    /// The child was killed because it exceeded its limit of time or memory.
    OverLimit,
}

/// Reason why a child's end is unknown.
#[derive(Debug)]
pub enum WaitError {
    /// The user interrupted heapdrome. [`wait`] has killed the child; [`watch`] has not.
    Interrupted,
    /// The system call that waits for the child failed.
    Io(io::Error),
}

/// Makes a command start with an empty standard input and in its own process group, which [`wait`]
/// kills. A terminal's Ctrl-C does not reach this group.
pub fn in_own_group(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).process_group(0)
}

/// Makes the kernel kill the child when the thread that starts it ends for any reason.
pub fn dies_with_parent(command: &mut Command) -> &mut Command {
    let ask = || Ok(set_parent_process_death_signal(Some(Signal::KILL))?);
    // SAFETY: `ask` only calls prctl, a plain system call without locks or heap memory. It is thus
    // async-signal-safe, as required between fork and exec.
    unsafe { command.pre_exec(ask) }
}

/// Waits until a child that leads a process group ends or exceeds its limits. Then, and also after
/// an error, kills the whole group, because a program may leave a hanging child behind.
///
/// # Errors
/// When `interrupt` is set before the child ends, or the kernel refuses to wait.
pub fn wait(child: &mut Child, limits: Limits, interrupt: &AtomicBool) -> Result<Ended, WaitError> {
    let seen = watch(child, limits, interrupt);
    // The group must be killed before the child is reaped, which frees the group's number for
    // reuse.
    kill_group(child);
    let status = child.wait().map_err(WaitError::Io)?;
    Ok(match seen? {
        true => Ended::Itself(status),
        false => Ended::OverLimit,
    })
}

/// Converts the exit status of a process into its ending.
pub fn ending(status: ExitStatus) -> Ending {
    match status.code() {
        Some(code) => Ending::Exited(code),
        None => Ending::Killed(status.signal().unwrap_or_default()),
    }
}

/// Waits until a child ends (true) or exceeds a limit (false). The child is neither killed nor
/// reaped.
///
/// # Errors
/// When `interrupt` is set before the child ends, or the kernel refuses to wait.
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

/// Reads a pipe in a thread, so that the child does not block on writing. Closes the pipe after
/// [`MOST_OUTPUT`] bytes.
pub fn collect(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(pipe) = pipe {
            // After a read error, the bytes read so far are returned.
            let _ = pipe.take(MOST_OUTPUT).read_to_end(&mut bytes);
        }
        bytes
    })
}

/// Returns the last non-empty line of a text, without surrounding white space.
pub fn last_line(text: &str) -> Option<&str> {
    let mut lines = text.lines().rev().map(str::trim);
    lines.find(|line| !line.is_empty())
}

/// Returns the child's resident memory, which is zero once the child has ended; `None` if it cannot
/// be read.
fn resident(child: &Child) -> Option<Bytes> {
    let text = std::fs::read_to_string(format!("/proc/{}/statm", child.id())).ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(Bytes(pages * page_size() as u64))
}

/// Returns whether the child has ended, without reaping it.
fn has_ended(child: &Child) -> io::Result<bool> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    match waitid(WaitId::Pid(Pid::from_child(child)), options) {
        Ok(ended) => Ok(ended.is_some()),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn kill_group(child: &Child) {
    // The group belongs to the child, which was started with process_group(0). Its number is not
    // reused until the child is reaped.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
}

#[cfg(test)]
mod tests;
