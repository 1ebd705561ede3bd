//! Resources that this process has used.

use heapdrome_schema::Bytes;
use heapdrome_system::kernel::keyed;

/// Processor time of all threads, in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used {
    pub(crate) user: f64,
    pub(crate) system: f64,
}

impl Used {
    /// Reads the time used until now.
    pub(crate) fn now() -> Self {
        // SAFETY: all zeros is a valid `rusage`, which is plain data; the call below overwrites it.
        let mut used: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: `used` is a valid, writable `rusage` that outlives the call. The call cannot fail
        // for `RUSAGE_SELF`.
        unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut used) };
        Self {
            user: seconds(used.ru_utime),
            system: seconds(used.ru_stime),
        }
    }

    /// Returns the time used since `self` was read.
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

/// Returns the peak of resident memory. Reads it from `/proc`, because `ru_maxrss` includes the
/// parent's peak.
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
