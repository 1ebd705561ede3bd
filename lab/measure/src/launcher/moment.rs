//! Time at which a forked child executes its command. The child does heapdrome's own work before
//! that, which must not count as the command's.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Returns the shared memory cell in which a child stores the time of its `exec`, in nanoseconds of
/// the monotonic clock; `None` if the kernel refuses the mapping.
fn shared() -> Option<&'static AtomicU64> {
    static MOMENT: OnceLock<Option<&'static AtomicU64>> = OnceLock::new();
    *MOMENT.get_or_init(|| {
        let both = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at an address chosen by the kernel does not affect existing memory.
        let page = unsafe { libc::mmap(std::ptr::null_mut(), 8, both, kind, -1, 0) };
        // SAFETY: the page is readable and writable, is never unmapped, and is aligned for a u64.
        // It is only accessed as this atomic, here and in the children that share it.
        (page != libc::MAP_FAILED).then(|| unsafe { AtomicU64::from_ptr(page.cast()) })
    })
}

/// Clears the time that the previous child stored. Returns the closure that the next child calls
/// before `exec`.
pub(crate) fn in_child() -> impl FnMut() -> io::Result<()> + Send + Sync + 'static {
    let moment = shared();
    if let Some(moment) = moment {
        moment.store(0, Ordering::Relaxed);
    }
    move || {
        if let Some(moment) = moment {
            // Relaxed: the launcher reads this time only after it has waited for the child, which
            // orders both accesses.
            moment.store(now(), Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Returns the time since the `exec` of the last child; `None` if the child has not stored it.
pub(crate) fn elapsed() -> Option<Duration> {
    let moment = shared()?.load(Ordering::Relaxed);
    (moment > 0).then(|| Duration::from_nanos(now().saturating_sub(moment)))
}

/// Returns the time of the monotonic clock in nanoseconds. May be called between fork and exec.
fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    (time.tv_sec as u64)
        .saturating_mul(1_000_000_000)
        .saturating_add(time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::Command;
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_childs_moment_reaches_its_parent() {
        let before = Instant::now();
        let mut command = Command::new("/bin/true");
        // SAFETY: the closure only reads a clock and writes to a shared page, which are
        // async-signal-safe.
        unsafe { command.pre_exec(in_child()) };
        assert_eq!(elapsed(), None);
        command.status().expect("/bin/true runs");
        let since = elapsed().expect("the child stored its moment");
        assert!(
            since <= before.elapsed() && since > Duration::ZERO,
            "{since:?}"
        );
    }
}
