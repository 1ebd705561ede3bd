//! The moment at which a forked child turns into the command: what comes before is heapdrome's own
//! work and must not count as the command's time.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Where a child writes its moment, in nanoseconds of the monotonic clock; the launcher and its
/// children share the page. `None` where the kernel gives none.
fn shared() -> Option<&'static AtomicU64> {
    static MOMENT: OnceLock<Option<&'static AtomicU64>> = OnceLock::new();
    *MOMENT.get_or_init(|| {
        let both = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at a place of the kernel's choice touches nothing that exists.
        let page = unsafe { libc::mmap(std::ptr::null_mut(), 8, both, kind, -1, 0) };
        // SAFETY: the page is never unmapped, is aligned for a u64, begins as zeros, and is only
        // used as this atomic, here and in the children that share it.
        (page != libc::MAP_FAILED).then(|| unsafe { AtomicU64::from_ptr(page.cast()) })
    })
}

/// Forgets the last child's moment, and gives what the next child does just before exec.
pub(crate) fn in_child() -> impl FnMut() -> io::Result<()> + Send + Sync + 'static {
    let moment = shared();
    if let Some(moment) = moment {
        moment.store(0, Ordering::Relaxed);
    }
    move || {
        if let Some(moment) = moment {
            // Relaxed: the launcher reads it after it has waited for the child.
            moment.store(now(), Ordering::Relaxed);
        }
        Ok(())
    }
}

/// The time since the last child turned into its command; `None` if it never did.
pub(crate) fn elapsed() -> Option<Duration> {
    let moment = shared()?.load(Ordering::Relaxed);
    (moment > 0).then(|| Duration::from_nanos(now().saturating_sub(moment)))
}

/// Nanoseconds of the monotonic clock. May be called between fork and exec.
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
        // SAFETY: what is done reads a clock and writes to a shared page, both allowed after fork.
        unsafe { command.pre_exec(in_child()) };
        assert_eq!(elapsed(), None);
        command.status().expect("/bin/true runs");
        let since = elapsed().expect("the child told its moment");
        assert!(
            since <= before.elapsed() && since > Duration::ZERO,
            "{since:?}"
        );
    }
}
