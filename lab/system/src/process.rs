//! Memory, page faults and processor time of this process and its children, and the kernel's
//! clocks. All are read without allocating.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::ops::Add;
use std::time::Duration;

/// The process's memory in bytes, as the kernel counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The peak resident set so far (`VmHWM`).
    pub peak_resident: u64,
    /// The resident set (`VmRSS`).
    pub resident: u64,
    /// The address space (`VmSize`).
    pub mapped: u64,
}

impl Memory {
    /// Reads `/proc/self/status` into a buffer on the stack. Returns zeros if the file cannot be
    /// read.
    pub fn read() -> Self {
        let mut buffer = [0_u8; 4096];
        let text = read_file(c"/proc/self/status", &mut buffer);
        Self {
            peak_resident: kibibytes(text, b"VmHWM:"),
            resident: kibibytes(text, b"VmRSS:"),
            mapped: kibibytes(text, b"VmSize:"),
        }
    }
}

/// Reads the beginning of a file into `buffer` with one `read`, and returns the bytes read. Returns
/// an empty slice on an error.
fn read_file<'a>(path: &CStr, buffer: &'a mut [u8]) -> &'a [u8] {
    // SAFETY: `path` is a `CStr`, so it is readable and ends in a zero byte.
    let file = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if file < 0 {
        return &[];
    }
    // SAFETY: `buffer` is valid for writes of its length; `file` is open.
    let length = unsafe { libc::read(file, buffer.as_mut_ptr().cast(), buffer.len()) };
    // SAFETY: `file` was opened above and is closed once.
    unsafe { libc::close(file) };
    &buffer[..usize::try_from(length).unwrap_or(0)]
}

/// Returns the number after `name` at the start of a line, converted from KiB to bytes; 0 if no
/// line starts with `name`.
fn kibibytes(text: &[u8], name: &[u8]) -> u64 {
    let line = text
        .split(|byte| *byte == b'\n')
        .find_map(|line| line.strip_prefix(name));
    let digits = line
        .unwrap_or_default()
        .iter()
        .filter(|byte| byte.is_ascii_digit());
    1024 * digits.fold(0, |number, digit| 10 * number + u64::from(digit - b'0'))
}

/// Scope of a count of page faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Page faults of all threads of this process.
    Process,
    /// Page faults of the calling thread.
    Thread,
}

/// Returns the number of page faults so far that needed no input (minor faults).
pub fn page_faults(whose: Whose) -> u64 {
    let whose = match whose {
        Whose::Process => libc::RUSAGE_SELF,
        Whose::Thread => libc::RUSAGE_THREAD,
    };
    u64::try_from(usage(whose).ru_minflt).unwrap_or(0)
}

fn usage(whose: libc::c_int) -> libc::rusage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is writable and outlives the call. Its zeros are a valid `rusage`, so it is
    // initialised even if the call fails.
    unsafe {
        libc::getrusage(whose, usage.as_mut_ptr());
        usage.assume_init()
    }
}

/// Resources used by those children of this process that have ended and been waited for.
#[derive(Clone, Copy, Debug, Default)]
pub struct OfChildren {
    /// Processor time.
    pub cpu: Duration,
    /// Number of page faults that needed no input from a disk.
    pub page_faults: u64,
    /// Highest peak resident memory of any of these children, in bytes.
    pub peak_resident: u64,
}

impl OfChildren {
    /// Reads the kernel's counts.
    pub fn read() -> Self {
        let usage = usage(libc::RUSAGE_CHILDREN);
        let time = |time: libc::timeval| {
            Duration::new(time.tv_sec.unsigned_abs(), 1000 * time.tv_usec as u32)
        };
        Self {
            cpu: time(usage.ru_utime) + time(usage.ru_stime),
            page_faults: u64::try_from(usage.ru_minflt).unwrap_or(0),
            peak_resident: 1024 * usage.ru_maxrss.unsigned_abs(),
        }
    }

    /// Returns the resources used since `earlier`. The peak is not reset: it covers all children so
    /// far.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(earlier.cpu),
            page_faults: self.page_faults.saturating_sub(earlier.page_faults),
            peak_resident: self.peak_resident,
        }
    }
}

/// Moment on two clocks: wall time and the process's processor time.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    wall: Duration,
    cpu: Duration,
}

impl Moment {
    /// Reads the clock of wall time and the process's clock of processor time.
    pub fn now() -> Self {
        Self {
            wall: clock(libc::CLOCK_MONOTONIC),
            cpu: clock(libc::CLOCK_PROCESS_CPUTIME_ID),
        }
    }

    /// Returns the time since this moment.
    pub fn elapsed(self) -> Elapsed {
        let now = Self::now();
        Elapsed {
            wall: now.wall.saturating_sub(self.wall),
            cpu: now.cpu.saturating_sub(self.cpu),
        }
    }
}

/// Elapsed time on the two clocks of a [`Moment`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Elapsed {
    /// Wall time.
    pub wall: Duration,
    /// Processor time of the whole process.
    pub cpu: Duration,
}

impl Add for Elapsed {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            wall: self.wall + other.wall,
            cpu: self.cpu + other.cpu,
        }
    }
}

/// Reads a clock of the kernel.
pub fn clock(which: libc::clockid_t) -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is writable and outlives the call. For an unknown clock, the call fails and
    // leaves `time` at zero.
    unsafe { libc::clock_gettime(which, &raw mut time) };
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touched_pages_are_faults_of_the_thread_and_of_its_process() {
        const PAGES: usize = 64;
        let before = [Whose::Thread, Whose::Process].map(page_faults);
        let mut fresh = vec![0_u8; PAGES * 4096];
        fresh.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
        std::hint::black_box(&fresh);
        let after = [Whose::Thread, Whose::Process].map(page_faults);
        for (before, after) in before.into_iter().zip(after) {
            assert!(after > before, "{before}, then {after}");
        }
    }

    #[test]
    fn lines_are_found_by_their_name() {
        let text = b"Name:\tVmRSS: 7 kB\nVmHWM:\t   12 kB\nVmRSS:\t 5 kB\n";
        assert_eq!(kibibytes(text, b"VmHWM:"), 12 * 1024);
        assert_eq!(kibibytes(text, b"VmRSS:"), 5 * 1024);
        assert_eq!(kibibytes(text, b"VmSwap:"), 0);
    }

    #[test]
    fn touched_memory_becomes_resident() {
        let before = Memory::read();
        let bytes = 64 << 20;
        let block = vec![1_u8; bytes];
        let after = Memory::read();
        drop(block);
        // The kernel's counters may lag by some pages on each processor.
        assert!(after.resident > before.resident + bytes as u64 * 9 / 10);
        assert!(after.peak_resident >= after.resident);
        assert!(after.mapped >= after.resident);
    }

    #[test]
    fn work_takes_time_on_both_clocks() {
        let begin = Moment::now();
        let mut sum = 0_u64;
        for number in 0..20_000_000_u64 {
            sum = std::hint::black_box(sum ^ number);
        }
        let elapsed = begin.elapsed();
        assert!(elapsed.wall > Duration::ZERO && elapsed.cpu > Duration::ZERO);
    }
}
