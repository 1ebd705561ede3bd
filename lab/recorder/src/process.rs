//! Queries the system about the recorded processes and about this process.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Bytes of anonymous memory that are resident.
    pub resident: u64,
    /// Number of page faults that were resolved without reading from a disk.
    pub minor_faults: u64,
    /// Processor time in nanoseconds.
    pub processor_time: u64,
}

fn folder(pid: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}"))
}

/// Returns the fields of `/proc/PID/stat` after the program's name.
fn stat(pid: u32) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(folder(pid).join("stat")).ok()?;
    // The name may contain any character, even a closing parenthesis.
    let (_, fields) = text.rsplit_once(") ")?;
    Some(fields.split(' ').map(str::to_owned).collect())
}

/// Returns whether a process exists and has not ended. The system shows a process as a zombie once
/// its first thread has ended, although the process lives on if it has other threads.
pub(crate) fn lives(pid: u32) -> bool {
    stat(pid).is_some_and(|fields| {
        let threads = fields.get(17).and_then(|threads| threads.parse().ok());
        !matches!(fields[0].as_str(), "Z" | "X") || threads.is_some_and(|threads: u32| threads > 1)
    })
}

/// Returns the number of this process's PID namespace; 0 if unknown.
pub(crate) fn namespace() -> u64 {
    let link = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let digits: String = link
        .to_string_lossy()
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    digits.parse().unwrap_or_default()
}

/// Returns the resource usage of a process; `None` if the system no longer shows it.
pub(crate) fn usage(pid: u32) -> Option<Usage> {
    let fields = stat(pid)?;
    let number = |place: usize| fields.get(place)?.parse::<u64>().ok();
    let pages = std::fs::read_to_string(folder(pid).join("statm")).ok()?;
    let mut pages = pages
        .split(' ')
        .skip(1)
        .map_while(|word| word.parse::<u64>().ok());
    let (resident, shared) = (pages.next()?, pages.next()?);
    Some(Usage {
        resident: resident.saturating_sub(shared) * page_bytes(),
        minor_faults: number(7)?,
        processor_time: processor_time(pid)
            .or_else(|| Some((number(11)? + number(12)?) * 1_000_000_000 / clock_ticks()))?,
    })
}

/// Returns the processor time of a process in nanoseconds; `None` if the process was reaped, or if
/// the system knows its time only in clock ticks.
pub(crate) fn processor_time(pid: u32) -> Option<u64> {
    let mut clock = 0;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: both calls only write to their last argument, which is a live variable.
    let known = unsafe {
        libc::clock_getcpuclockid(pid.cast_signed(), &raw mut clock) == 0
            && libc::clock_gettime(clock, &raw mut time) == 0
    };
    let nanoseconds = || time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs();
    known.then(nanoseconds)
}

/// Makes writes beyond the file size limit (`ulimit -f`) fail, instead of ending this process by
/// SIGXFSZ. Executed commands do not inherit the handler.
pub(crate) fn survive_file_limit() {
    extern "C" fn nothing(_signal: libc::c_int) {}
    let handler: extern "C" fn(libc::c_int) = nothing;
    // SAFETY: the handler does nothing, so it may run at any time.
    unsafe { libc::signal(libc::SIGXFSZ, handler as libc::sighandler_t) };
}

/// Returns the processor time of this process in nanoseconds.
pub(crate) fn own_time() -> u64 {
    let usage = own_usage();
    let nanoseconds = |time: libc::timeval| {
        time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_usec.unsigned_abs() * 1000
    };
    nanoseconds(usage.ru_utime) + nanoseconds(usage.ru_stime)
}

/// Returns the peak resident memory of this process in bytes.
pub(crate) fn own_peak() -> u64 {
    own_usage().ru_maxrss.unsigned_abs() * 1024
}

fn own_usage() -> libc::rusage {
    // SAFETY: every field is an integer, and zero is a valid integer.
    let mut usage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` has room for the answer.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    usage
}

/// Returns the text of a process's `/proc/PID/maps`; `None` if the process has ended, or belongs to
/// another user.
pub(crate) fn maps(pid: u32) -> Option<String> {
    let text = std::fs::read_to_string(folder(pid).join("maps")).ok()?;
    (!text.is_empty()).then_some(text)
}

/// Returns the size of a page in bytes.
pub(crate) fn page_bytes() -> u64 {
    // SAFETY: sysconf has no preconditions.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.unsigned_abs()
}

fn clock_ticks() -> u64 {
    // SAFETY: sysconf has no preconditions.
    unsafe { libc::sysconf(libc::_SC_CLK_TCK) }
        .unsigned_abs()
        .max(1)
}

/// Returns the path of a process's executable.
pub(crate) fn program(pid: u32) -> Option<String> {
    let path = std::fs::read_link(folder(pid).join("exe")).ok()?;
    Some(path.to_string_lossy().into_owned())
}

/// Returns all descendants of a process.
pub(crate) fn descendants(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut waiting = vec![pid];
    let mut seen = HashSet::from([pid]);
    while let Some(pid) = waiting.pop() {
        let Ok(tasks) = std::fs::read_dir(folder(pid).join("task")) else {
            continue;
        };
        for task in tasks.flatten() {
            let children = std::fs::read_to_string(task.path().join("children"));
            let children = children.unwrap_or_default();
            for child in children
                .split_whitespace()
                .filter_map(|word| word.parse().ok())
            {
                if seen.insert(child) {
                    found.push(child);
                    waiting.push(child);
                }
            }
        }
    }
    found
}

/// Returns whether a process has loaded the recording library, and if not, the reason.
pub(crate) fn loaded(pid: u32, library: &Path) -> Loaded {
    let proc = folder(pid);
    let Ok(maps) = std::fs::read_to_string(proc.join("maps")) else {
        return Loaded::Unknown;
    };
    if maps.is_empty() {
        return Loaded::Unknown;
    }
    if maps.contains(&*library.to_string_lossy()) {
        return Loaded::Yes;
    }
    if !maps.contains("/ld-") {
        return Loaded::No("it is statically linked");
    }
    let environment = std::fs::read(proc.join("environ")).unwrap_or_default();
    let library = library.to_string_lossy();
    let preloads = String::from_utf8_lossy(&environment).contains(&*library);
    Loaded::No(if preloads {
        "its loader ignored LD_PRELOAD, as it does where a program gets other rights"
    } else {
        "its environment has no LD_PRELOAD"
    })
}

/// Result of [`loaded`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loaded {
    Yes,
    No(&'static str),
    /// The process has ended, or belongs to another user.
    Unknown,
}
