//! Queries to the kernel and the C library through calls instead of files. All `unsafe` code of
//! this crate is in this module and in `faults`.

use std::io::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use perf_event::Builder;
use perf_event::events::Hardware;
use rustix::fs;
use rustix::system::uname;
use rustix::thread::sched_getaffinity;

/// Returns the number of processors that the scheduler may use for this process; at least one.
pub(crate) fn usable_processors() -> usize {
    match sched_getaffinity(None).map(|set| set.count()) {
        Ok(count) if count > 0 => count as usize,
        _ => std::thread::available_parallelism().map_or(1, usize::from),
    }
}

/// Returns whether this process may write into `path`.
pub(crate) fn may_write(path: &Path) -> bool {
    fs::accessat(fs::CWD, path, fs::Access::WRITE_OK, fs::AtFlags::EACCESS).is_ok()
}

/// Returns the number of bytes that this user may still write into the file system of `path`;
/// `None` if the system does not report it.
pub(crate) fn free_bytes(path: &Path) -> Option<u64> {
    let found = fs::statvfs(path).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Returns whether this process and its children run without address space randomisation. `None` if
/// the kernel refuses the query.
pub(crate) fn layout_is_fixed() -> Option<bool> {
    // SAFETY: the argument 0xffff_ffff queries the current personality and changes nothing.
    let personality = unsafe { libc::personality(0xffff_ffff) };
    (personality >= 0).then_some(personality & libc::ADDR_NO_RANDOMIZE != 0)
}

/// Returns the kernel's release, such as `6.1.0-18-amd64`.
pub(crate) fn kernel_release() -> String {
    uname().release().to_string_lossy().into_owned()
}

/// Returns the C library of this process and its version, or `not glibc`.
pub(crate) fn c_library() -> String {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: the function returns a pointer to a static string that ends with a zero byte.
        let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
        format!("glibc {}", version.to_string_lossy())
    }
    #[cfg(not(target_env = "gnu"))]
    {
        "not glibc".to_owned()
    }
}

/// Opens a counter of retired instructions in user mode on this thread, and closes it again.
///
/// # Errors
/// Returns the kernel's error if the counter cannot be opened.
pub(crate) fn try_hardware_counter() -> Result<(), Error> {
    let mut counter = Builder::new(Hardware::INSTRUCTIONS);
    counter.exclude_kernel(true).exclude_hv(true);
    counter.build().map(drop)
}

/// Checks whether a child may request tracing, as the witness's children do.
///
/// # Errors
/// Returns an error if the fork, the request or the wait fails, or the child is killed.
pub(crate) fn try_trace() -> Result<(), Error> {
    // SAFETY: between fork and _exit the child only calls ptrace and reads errno. Both are
    // async-signal-safe, as required after a fork of a threaded process. The parent waits for
    // exactly this child.
    unsafe {
        match libc::fork() {
            -1 => Err(Error::last_os_error()),
            0 => {
                let null = std::ptr::null_mut::<libc::c_void>();
                let traced = libc::ptrace(libc::PTRACE_TRACEME, 0, null, null);
                libc::_exit(if traced == 0 {
                    0
                } else {
                    *libc::__errno_location()
                });
            }
            child => wait_for(child),
        }
    }
}

/// Waits for `child` and converts its exit status into a result: 0 into success, any other status
/// into the error of this number. Also returns an error if the child was killed.
fn wait_for(child: libc::pid_t) -> Result<(), Error> {
    let mut status = 0;
    loop {
        // SAFETY: `status` outlives the call, and `child` is a child of this process that has not
        // been reaped.
        let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
        if ended == child && libc::WIFEXITED(status) {
            return match libc::WEXITSTATUS(status) {
                0 => Ok(()),
                number => Err(Error::from_raw_os_error(number)),
            };
        }
        if ended == child {
            return Err(Error::other("the traced child was killed"));
        }
        let error = Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Measures the time that one reading of the clock takes: the mean of the fastest of several
/// batches.
pub(crate) fn clock_cost() -> Duration {
    const READINGS: u32 = 1000;
    let batch = || {
        let start = Instant::now();
        for _ in 0..READINGS {
            std::hint::black_box(Instant::now());
        }
        start.elapsed() / READINGS
    };
    (0..5).map(|_| batch()).min().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_answers_here() {
        assert!(usable_processors() >= 1);
        assert!(kernel_release().contains('.'));
        assert!(free_bytes(Path::new("/")).is_some());
        assert_eq!(free_bytes(Path::new("/no/such/folder")), None);
        assert!(!may_write(Path::new("/no/such/folder")));
        assert!(clock_cost() < Duration::from_millis(1));
    }

    #[test]
    fn a_trial_of_tracing_answers_alike_each_time() {
        let number = |tried: Result<(), Error>| tried.err().and_then(|error| error.raw_os_error());
        assert_eq!(number(try_trace()), number(try_trace()));
    }
}
