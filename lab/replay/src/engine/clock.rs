//! Clock of a replay, until whose times the threads of a paced replay sleep.

use std::sync::atomic::{AtomicU64, Ordering};

const SECOND: u64 = 1_000_000_000;

/// Minimum sleep that justifies a system call, in nanoseconds.
const SHORTEST: u64 = 20_000;

/// Clock that starts with the replay.
#[derive(Debug, Default)]
pub(super) struct Clock {
    began: u64,
    late: AtomicU64,
}

impl Clock {
    /// Starts a clock. Sets the timers of this thread, and of all threads that it starts, to their
    /// highest accuracy.
    pub(super) fn started() -> Self {
        // SAFETY: the call only changes the accuracy of this thread's timers.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
        Self {
            began: now(),
            late: AtomicU64::new(0),
        }
    }

    /// Sleeps until `time` nanoseconds after the beginning of the replay, unless less than
    /// [`SHORTEST`] is left. If that time has already passed, records the delay.
    pub(super) fn sleep_until(&self, time: u64) {
        let passed = now() - self.began;
        if passed > time {
            self.late.fetch_max(passed - time, Ordering::Relaxed);
        }
        if time < passed + SHORTEST {
            return;
        }
        let end = self.began + time;
        let end = libc::timespec {
            tv_sec: (end / SECOND) as libc::time_t,
            tv_nsec: (end % SECOND) as libc::c_long,
        };
        let (clock, flags) = (libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME);
        // SAFETY: `end` outlives the call, which reports no remaining time.
        let sleep =
            || unsafe { libc::clock_nanosleep(clock, flags, &raw const end, std::ptr::null_mut()) };
        while sleep() == libc::EINTR {}
    }

    /// Returns the maximum delay of an operation so far, in nanoseconds.
    pub(super) fn late(&self) -> u64 {
        self.late.load(Ordering::Relaxed)
    }
}

/// Returns the time of the monotonic clock in nanoseconds.
fn now() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` has room for the answer, and Linux has the clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.unsigned_abs() * SECOND + time.tv_nsec.unsigned_abs()
}
