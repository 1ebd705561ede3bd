//! What this library asks of Linux beyond the contract of `heapdrome-pages`.

use heapdrome_pages::{KeepErrno, Linux, Pages};

use crate::class::UNIT;

/// Begins to bring a range of whole pages into memory.
pub fn will_need(start: usize, size: usize) -> Result<(), i32> {
    let _errno = KeepErrno::new();
    // SAFETY: this advice changes no contents, whatever the range.
    let result = unsafe { libc::madvise(start as *mut _, size, libc::MADV_WILLNEED) };
    if result == 0 {
        return Ok(());
    }
    Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
}

/// Whether pages of a region are missing: swapped out, or never touched. Of a large region, sixteen
/// stretches of 2 MiB are looked at. What cannot be learned counts as present.
pub fn has_absent_pages(start: usize, size: usize) -> bool {
    const AT_MOST: usize = 16;
    let _errno = KeepErrno::new();
    let mut present = [0_u8; UNIT / 4096];
    let pages = (UNIT / Linux.page_size()).min(present.len());
    let units = size / UNIT;
    let step = units.div_ceil(AT_MOST);
    (0..units).step_by(step.max(1)).any(|unit| {
        let place = start + unit * UNIT;
        // SAFETY: the kernel writes one byte for each page of the range, `pages` at most.
        let result = unsafe { libc::mincore(place as *mut _, UNIT, present.as_mut_ptr()) };
        result == 0 && present[..pages].iter().any(|page| page & 1 == 0)
    })
}

/// Milliseconds since some fixed moment, coarse and without a system call.
#[inline]
pub fn now() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes to the local variable only; this clock exists, so that errno stays.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &raw mut time) };
    (time.tv_sec as u64).wrapping_mul(1000) + (time.tv_nsec as u64) / 1_000_000
}
