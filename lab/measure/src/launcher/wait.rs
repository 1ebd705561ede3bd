//! System calls of a launcher that the standard library lacks.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use heapdrome_schema::{Bytes, Ending, Nanoseconds};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{self, Pid, PidfdFlags, Signal};
use rustix::thread::{self, CpuSet};

use super::message::Usage;

pub(super) struct Reaped {
    pub(super) pid: libc::pid_t,
    pub(super) ending: Ending,
    pub(super) usage: Usage,
}

/// Result of reaping a child.
pub(super) enum Reaping {
    /// This child has ended.
    Ended(Reaped),
    /// All children are alive.
    AllLive,
    /// There are no children.
    Childless,
}

/// Waits for the end of the child `pid`, and reaps it.
pub(super) fn wait_for(pid: libc::pid_t) -> io::Result<Reaped> {
    loop {
        match wait4(pid, 0) {
            Ok(Some(reaped)) => return Ok(reaped),
            Ok(None) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Waits for the end of the child `pid`, reaps it, and returns its cost.
pub(crate) fn child_usage(pid: u32) -> io::Result<Usage> {
    let pid = libc::pid_t::try_from(pid).map_err(io::Error::other)?;
    wait_for(pid).map(|reaped| reaped.usage)
}

/// Reaps one child that has ended, if there is one, without waiting.
pub(super) fn reap_any() -> Reaping {
    match wait4(-1, libc::WNOHANG | libc::__WALL) {
        Ok(Some(reaped)) => Reaping::Ended(reaped),
        Ok(None) => Reaping::AllLive,
        Err(_) => Reaping::Childless,
    }
}

fn wait4(pid: libc::pid_t, options: libc::c_int) -> io::Result<Option<Reaped>> {
    let mut status = 0;
    // SAFETY: all fields of rusage are integers, for which zero is a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers point to live variables of the types that wait4 writes.
    let reaped = unsafe { libc::wait4(pid, &raw mut status, options, &raw mut usage) };
    match reaped {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        pid => Ok(Some(Reaped {
            pid,
            ending: ending_of(status),
            usage: usage_of(&usage),
        })),
    }
}

fn ending_of(status: libc::c_int) -> Ending {
    if libc::WIFSIGNALED(status) {
        Ending::Killed(libc::WTERMSIG(status))
    } else {
        Ending::Exited(libc::WEXITSTATUS(status))
    }
}

fn usage_of(usage: &libc::rusage) -> Usage {
    let count = |value: libc::c_long| u64::try_from(value).unwrap_or(0);
    let span = |time: libc::timeval| {
        Nanoseconds(count(time.tv_sec) * 1_000_000_000 + count(time.tv_usec) * 1000)
    };
    Usage {
        user: span(usage.ru_utime),
        system: span(usage.ru_stime),
        peak_rss: Bytes::from_kib(count(usage.ru_maxrss)),
        minor_faults: count(usage.ru_minflt),
        major_faults: count(usage.ru_majflt),
        voluntary_switches: count(usage.ru_nvcsw),
        involuntary_switches: count(usage.ru_nivcsw),
    }
}

fn id(pid: libc::pid_t) -> Result<Pid, Errno> {
    Pid::from_raw(pid).ok_or(Errno::SRCH)
}

/// Opens a pidfd for the process `pid`. It becomes readable when the process ends.
pub(super) fn pidfd(pid: libc::pid_t) -> io::Result<OwnedFd> {
    Ok(process::pidfd_open(id(pid)?, PidfdFlags::empty())?)
}

/// Waits until at least one of `fds` is readable or closed, `timeout` has passed, or a signal
/// arrives. Returns, for each of `fds`, whether it is readable or closed.
pub(crate) fn poll<const N: usize>(
    fds: [BorrowedFd<'_>; N],
    timeout: Option<Duration>,
) -> io::Result<[bool; N]> {
    let mut entries = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    let limit = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    match rustix::event::poll(&mut entries, limit.as_ref()) {
        Err(Errno::INTR) => Ok([false; N]),
        Err(error) => Err(error.into()),
        Ok(_) => Ok(entries.map(|entry| !entry.revents().is_empty())),
    }
}

/// Sends `signal` to the process of `pidfd`, which may already have ended.
pub(super) fn send_to(pidfd: BorrowedFd<'_>, signal: Signal) -> io::Result<()> {
    match process::pidfd_send_signal(pidfd, signal) {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Sends `signal` to `pid`, which may already have ended.
pub(super) fn send(pid: libc::pid_t, signal: Signal) {
    let _ = id(pid).and_then(|pid| process::kill_process(pid, signal));
}

/// Sends SIGTERM to the process group whose leader is `pid`. The leader may already have ended.
pub(super) fn terminate_group(pid: libc::pid_t) {
    let _ = id(pid).and_then(|pid| process::kill_process_group(pid, Signal::TERM));
}

/// Makes this process a subreaper, with its own session and name.
pub(super) fn stand_apart() -> io::Result<()> {
    // Both errors are harmless. setsid fails only for the leader of a process group, which already
    // has a group of its own. The name matters only in process lists.
    let _ = process::setsid();
    let _ = thread::set_name(c"heapdrome-run");
    Ok(process::set_child_subreaper(Some(process::getpid()))?)
}

/// Returns the CPUs that this thread may use.
pub(super) fn affinity() -> io::Result<CpuSet> {
    Ok(thread::sched_getaffinity(None)?)
}

/// Returns a set of exactly `cpus`.
pub(super) fn cpu_set(cpus: &[usize]) -> io::Result<CpuSet> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu >= CpuSet::MAX_CPU {
            return Err(Errno::INVAL.into());
        }
        set.set(cpu);
    }
    Ok(set)
}

/// Restricts this thread, and the processes that it starts later, to the CPUs of `set`.
pub(super) fn set_affinity(set: &CpuSet) -> io::Result<()> {
    Ok(thread::sched_setaffinity(None, set)?)
}
