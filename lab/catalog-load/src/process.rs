//! What this process has used so far.

use heapdrome_schema::Bytes;
use heapdrome_system::kernel::keyed;

/// Processor time of all threads, in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used {
    pub(crate) user: f64,
    pub(crate) system: f64,
}

impl Used {
    /// What was used until now.
    pub(crate) fn now() -> Self {
        // SAFETY: a rusage of zeros is a valid one, and only a place to write to here.
        let mut used: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: `used` is a valid place for the answer and outlives the call, which cannot fail
        // for RUSAGE_SELF.
        unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut used) };
        Self {
            user: seconds(used.ru_utime),
            system: seconds(used.ru_stime),
        }
    }

    /// What was used since.
    pub(crate) fn since(&self) -> Self {
        let now = Self::now();
        Self {
            user: now.user - self.user,
            system: now.system - self.system,
        }
    }
}

fn seconds(time: libc::timeval) -> f64 {
    time.tv_sec as f64 + time.tv_usec as f64 / 1e6
}

/// The peak of resident memory. From `/proc`, since `ru_maxrss` counts what the parent had.
pub(crate) fn peak_resident() -> Option<Bytes> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    keyed(&status, "VmHWM:").map(Bytes::from_kib)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_time_and_what_it_touches_is_resident() {
        let before = Used::now();
        let work = vec![1_u8; 64 << 20];
        let mut sum = 0_u64;
        loop {
            sum += work.iter().map(|one| u64::from(*one)).sum::<u64>();
            if before.since().user >= 0.01 {
                break;
            }
        }
        assert!(sum >= 64 << 20);
        assert!(peak_resident().expect("procfs").0 >= 64 << 20);
    }
}
