//! Child processes that may crash, hang, or take all memory.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use heapdrome_record::{Bytes, Entrant};

use crate::CatalogueError;
use crate::error::file_error;
use crate::system_libc;

/// How often a child is looked at.
const PAUSE: Duration = Duration::from_millis(2);

/// What a child may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Wall time.
    pub(crate) time: Duration,
    /// Resident memory. It is looked at every few milliseconds, since a limit on address space would
    /// keep allocators that reserve much of it from working at all.
    pub(crate) memory: Option<Bytes>,
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// By itself.
    Itself(ExitStatus),
    /// It was killed when its time or memory was used up.
    OverLimit,
}

/// Why nothing is known of a child.
#[derive(Debug)]
pub(crate) enum WaitError {
    Interrupted,
    Io(std::io::Error),
}

/// A command under an entrant, in a group of its own, which is told what library it should find.
pub(crate) fn command(program: &Path, entrant: &Entrant, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(folder)
        .stdin(Stdio::null())
        .process_group(0);
    command.env_remove("LD_PRELOAD").envs(entrant.environment());
    let expected = entrant.library.clone().or_else(system_libc);
    command.envs(expected.map(|library| ("HEAPDROME_EXPECTED", library)));
    command
}

/// Runs a command to its end, or to that of its limits.
///
/// # Errors
/// When it cannot be started or waited for, or the person asked heapdrome to stop.
pub(crate) fn run(
    command: &mut Command,
    name: &str,
    limits: Limits,
    interrupt: &AtomicBool,
) -> Result<Ended, CatalogueError> {
    let program = Path::new(command.get_program()).to_owned();
    let child = command.spawn().map_err(file_error("start", &program))?;
    wait(child, limits, interrupt).map_err(|error| match error {
        WaitError::Interrupted => CatalogueError::Interrupted {
            name: name.to_owned(),
        },
        WaitError::Io(source) => file_error("wait for", &program)(source),
    })
}

/// How the child ended. What it started in its group goes with it, however it ended: a program that
/// dies while its child hangs leaves that child behind.
fn wait(mut child: Child, limits: Limits, interrupt: &AtomicBool) -> Result<Ended, WaitError> {
    let started = Instant::now();
    let (mut interrupted, mut over) = (false, false);
    let seen = loop {
        match has_ended(&child) {
            Ok(false) => {}
            other => break other,
        }
        interrupted = interrupt.load(Ordering::Relaxed);
        let too_large = |most| resident(&child).is_some_and(|now| now > most);
        over = started.elapsed() > limits.time || limits.memory.is_some_and(too_large);
        if interrupted || over {
            break Ok(true);
        }
        std::thread::sleep(PAUSE);
    };
    // Only now may it be reaped, since that frees the number of its group.
    kill_group(&child);
    let status = child.wait().map_err(WaitError::Io)?;
    seen.map_err(WaitError::Io)?;
    match (interrupted, over) {
        (true, _) => Err(WaitError::Interrupted),
        (false, true) => Ok(Ended::OverLimit),
        (false, false) => Ok(Ended::Itself(status)),
    }
}

/// The child's resident memory; `None` once it has ended.
fn resident(child: &Child) -> Option<Bytes> {
    let text = std::fs::read_to_string(format!("/proc/{}/statm", child.id())).ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    // SAFETY: sysconf takes a plain number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    Some(Bytes(pages * u64::try_from(page).ok()?))
}

/// Whether the child has ended; it is not reaped.
fn has_ended(child: &Child) -> std::io::Result<bool> {
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: all fields of siginfo_t are integers, for which zero is a value.
    let mut found: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live variable of the type that waitid writes.
    if unsafe { libc::waitid(libc::P_PID, child.id(), &raw mut found, options) } != 0 {
        let error = std::io::Error::last_os_error();
        return match error.kind() {
            std::io::ErrorKind::Interrupted => Ok(false),
            _ => Err(error),
        };
    }
    // SAFETY: waitid fills in a child's fields, or leaves the zeros, of which the id is one.
    Ok(unsafe { found.si_pid() } != 0)
}

fn kill_group(child: &Child) {
    let Ok(group) = libc::pid_t::try_from(child.id()) else {
        return;
    };
    // SAFETY: kill takes plain numbers. The group is the child's own, since it was started with
    // process_group(0), and its number is not reused before the child is waited for.
    unsafe { libc::kill(-group, libc::SIGKILL) };
}

#[cfg(test)]
mod tests {
    use super::*;

    const GENEROUS: Limits = Limits {
        time: Duration::from_secs(120),
        memory: None,
    };

    /// A shell that makes a child of its own before it does `end`.
    fn shell(folder: &Path, end: &str) -> Child {
        let script = format!("sleep 60 & echo $! >new; mv new child; {end}");
        Command::new("sh")
            .args(["-c", &script])
            .current_dir(folder)
            .process_group(0)
            .spawn()
            .expect("a shell starts")
    }

    /// The child that the shell made.
    fn child_in(folder: &Path) -> libc::pid_t {
        let started = Instant::now();
        loop {
            assert!(started.elapsed() < GENEROUS.time, "no child was made");
            if let Ok(text) = std::fs::read_to_string(folder.join("child")) {
                return text.trim().parse().expect("a process id");
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn lives(pid: libc::pid_t) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ")
            .is_some_and(|(_, after)| !after.starts_with(['Z', 'X']))
    }

    #[test]
    fn what_a_program_leaves_behind_goes_with_it_however_it_ended() {
        use std::os::unix::process::ExitStatusExt as _;
        for (end, code, signal) in [
            ("exit 0", Some(0), None),
            ("exit 3", Some(3), None),
            ("kill -SEGV $$", None, Some(libc::SIGSEGV)),
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            let shell = shell(folder.path(), end);
            let child = child_in(folder.path());
            let ending = wait(shell, GENEROUS, &AtomicBool::new(false));
            let Ok(Ended::Itself(status)) = ending else {
                panic!("{end}: it does not end by itself");
            };
            assert_eq!((status.code(), status.signal()), (code, signal));
            let started = Instant::now();
            while lives(child) {
                assert!(
                    started.elapsed() < GENEROUS.time,
                    "{end}: the child is left"
                );
                std::thread::sleep(PAUSE);
            }
        }
    }

    #[test]
    fn an_interrupt_ends_a_program() {
        let folder = tempfile::tempdir().expect("a folder");
        let shell = shell(folder.path(), "wait");
        let ending = wait(shell, GENEROUS, &AtomicBool::new(true));
        assert!(matches!(ending, Err(WaitError::Interrupted)));
    }

    #[test]
    fn a_program_that_takes_more_than_it_may_is_ended() {
        for limits in [
            Limits {
                time: Duration::from_millis(20),
                memory: None,
            },
            Limits {
                memory: Some(Bytes(1)),
                ..GENEROUS
            },
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            let shell = shell(folder.path(), "wait");
            let ending = wait(shell, limits, &AtomicBool::new(false));
            assert_eq!(ending.ok(), Some(Ended::OverLimit));
        }
    }
}
