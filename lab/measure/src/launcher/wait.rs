//! The system calls of a launcher that the standard library has no words for.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use heapdrome_schema::{Bytes, Ending, Nanoseconds};

use super::message::Usage;

/// A child that ended.
pub(super) struct Reaped {
    pub(super) pid: libc::pid_t,
    pub(super) ending: Ending,
    pub(super) usage: Usage,
}

/// What there is to reap.
pub(super) enum Reaping {
    /// This child ended.
    Ended(Reaped),
    /// There are children, and all of them live.
    AllLive,
    /// There are no children.
    Childless,
}

/// Waits for the end of `pid`, which is a child.
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

/// What the child `pid` of this process cost, once it has ended.
pub(crate) fn child_usage(pid: u32) -> io::Result<Usage> {
    let pid = libc::pid_t::try_from(pid).map_err(io::Error::other)?;
    wait_for(pid).map(|reaped| reaped.usage)
}

/// Reaps one child of any if one has ended, without waiting.
pub(super) fn reap_any() -> Reaping {
    match wait4(-1, libc::WNOHANG | libc::__WALL) {
        Ok(Some(reaped)) => Reaping::Ended(reaped),
        Ok(None) => Reaping::AllLive,
        Err(_) => Reaping::Childless,
    }
}

fn wait4(pid: libc::pid_t, options: libc::c_int) -> io::Result<Option<Reaped>> {
    let mut status = 0;
    // SAFETY: all fields of rusage are integers, for which zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live variables of the types that wait4 writes.
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

/// A descriptor for the process `pid`, which becomes readable when it ends.
pub(super) fn pidfd(pid: libc::pid_t) -> io::Result<OwnedFd> {
    // SAFETY: pidfd_open takes two integers and touches no memory of ours.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let fd = i32::try_from(fd).unwrap_or(-1);
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just made this descriptor for us, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Waits until one of `fds` is readable or closed, or `timeout` is over; says which are.
pub(crate) fn poll<const N: usize>(
    fds: [BorrowedFd<'_>; N],
    timeout: Option<Duration>,
) -> io::Result<[bool; N]> {
    let mut entries = fds.map(|fd| libc::pollfd {
        fd: fd.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    });
    let limit = timeout.map(|timeout| libc::timespec {
        tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: `entries` is an array of N pollfd, `limit` is null or points to a timespec that
    // lives until the end of this function, and a null mask changes none.
    let ready = unsafe { libc::ppoll(entries.as_mut_ptr(), N as _, limit, std::ptr::null()) };
    if ready < 0 {
        let error = io::Error::last_os_error();
        if error.kind() == io::ErrorKind::Interrupted {
            return Ok([false; N]);
        }
        return Err(error);
    }
    Ok(entries.map(|entry| entry.revents != 0))
}

/// Sends `signal` to the process that `pidfd` stands for; it may be gone already.
pub(super) fn send_to(pidfd: BorrowedFd<'_>, signal: libc::c_int) -> io::Result<()> {
    let information = std::ptr::null::<libc::siginfo_t>();
    let fd = pidfd.as_raw_fd();
    // SAFETY: pidfd_send_signal takes integers and a pointer that may be null; the descriptor is
    // open as long as `pidfd` lives.
    let sent = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, signal, information, 0) };
    if sent == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ESRCH) => Ok(()),
        _ => Err(error),
    }
}

/// Sends `signal` to `pid`, or to the process group `-pid`; it may be gone already.
pub(super) fn send(pid: libc::pid_t, signal: libc::c_int) {
    // SAFETY: kill takes two integers and touches no memory of ours.
    unsafe { libc::kill(pid, signal) };
}

/// Makes this process a subreaper with a session and a name of its own.
pub(super) fn stand_apart() -> io::Result<()> {
    // SAFETY: neither call takes a pointer but the name, which is a C string that lives for ever.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, c"heapdrome-run".as_ptr());
        if libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// The CPUs that this process may use.
pub(super) fn affinity() -> io::Result<libc::cpu_set_t> {
    // SAFETY: a cpu_set_t is an array of integers, for which zero is a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is a live cpu_set_t of the size given.
    let failed = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) } != 0;
    if failed {
        Err(io::Error::last_os_error())
    } else {
        Ok(set)
    }
}

/// A set of just `cpus`.
pub(super) fn cpu_set(cpus: &[usize]) -> io::Result<libc::cpu_set_t> {
    // SAFETY: as in `affinity`.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for &cpu in cpus {
        if cpu >= size_of_val(&set) * 8 {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        // SAFETY: `cpu` is below the number of bits in the set.
        unsafe { libc::CPU_SET(cpu, &mut set) };
    }
    Ok(set)
}

/// Lets this process, and what it starts from now on, use the CPUs of `set` only.
pub(super) fn set_affinity(set: &libc::cpu_set_t) -> io::Result<()> {
    // SAFETY: `set` is a live cpu_set_t of the size given.
    let failed = unsafe { libc::sched_setaffinity(0, size_of_val(set), set) } != 0;
    if failed {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
