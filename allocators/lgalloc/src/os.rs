//! Linux services that `heapdrome-pages` does not provide.

use heapdrome_pages::{KeepErrno, Linux, Pages};

use crate::class::UNIT;

/// Starts to read a range of whole pages into memory.
pub fn will_need(start: usize, size: usize) -> Result<(), i32> {
    let _errno = KeepErrno::new();
    // SAFETY: this advice changes no contents of any range.
    let result = unsafe { libc::madvise(start as *mut _, size, libc::MADV_WILLNEED) };
    if result == 0 {
        return Ok(());
    }
    Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
}

/// Maximum number of stretches of 2 MiB that are checked in a region.
const LOOKED_AT: usize = 16;
/// Number of pages in a stretch of 2 MiB if a page has 4 KiB, the minimum.
const PAGES: usize = UNIT / 4096;

/// Calls `drop` with every swapped part of a region. Returns the total number of bytes in the parts
/// for which `drop` returns true. `is_swapped` returns whether any page of the stretch of 2 MiB at
/// an address is in swap.
///
/// In a region of at most 32 MiB, checks and reports each stretch separately. In a larger region,
/// checks only a sample, and reports the whole region if one stretch of the sample is in swap.
pub fn swapped_stretches(
    start: usize,
    size: usize,
    mut is_swapped: impl FnMut(usize) -> bool,
    mut drop: impl FnMut(usize, usize) -> bool,
) -> usize {
    let mut dropped = |place, size| if drop(place, size) { size } else { 0 };
    let units = size / UNIT;
    let step = units.div_ceil(LOOKED_AT).max(1);
    let stretches = (0..units).step_by(step).map(|unit| start + unit * UNIT);
    let mut swapped = stretches.filter(|place| is_swapped(*place));
    if step > 1 {
        return swapped.next().map_or(0, |_| dropped(start, size));
    }
    swapped.map(|place| dropped(place, UNIT)).sum()
}

/// Reader of `/proc/self/pagemap`. Opens the file when it is first needed. Create a reader for each
/// use: after a fork, an open file would still describe the parent.
#[derive(Default)]
pub struct PageMap {
    file: Option<std::fs::File>,
}

impl PageMap {
    /// Returns whether any page of a stretch of 2 MiB is in swap and not in memory. Returns false
    /// if the system does not report this. Pages that were never written are not in swap.
    pub fn has_swapped(&mut self, place: usize) -> bool {
        let _errno = KeepErrno::new();
        let page = Linux.page_size();
        let mut present = [0_u8; PAGES];
        let pages = (UNIT / page).min(PAGES);
        // SAFETY: the kernel writes one byte for each page of the range, at most `PAGES`.
        let result = unsafe { libc::mincore(place as *mut _, UNIT, present.as_mut_ptr()) };
        if result != 0 || present[..pages].iter().all(|page| page & 1 == 1) {
            return false;
        }
        let mut entries = [0_u8; PAGES * 8];
        let entries = &mut entries[..pages * 8];
        self.read(place / page * 8, entries) && absent_in_swap(&present[..pages], entries)
    }

    fn read(&mut self, offset: usize, entries: &mut [u8]) -> bool {
        use std::os::unix::fs::FileExt;
        if self.file.is_none() {
            self.file = std::fs::File::open("/proc/self/pagemap").ok();
        }
        let file = self.file.as_ref();
        file.is_some_and(|file| file.read_exact_at(entries, offset as u64).is_ok())
    }
}

/// Returns whether any page is marked as swapped in `entries`, and is not in memory or in the swap
/// cache.
fn absent_in_swap(present: &[u8], entries: &[u8]) -> bool {
    // See Documentation/admin-guide/mm/pagemap.rst for bit 62 of an entry.
    let swapped = |entry: &[u8]| entry[7] & (1 << 6) != 0;
    let mut pages = present.iter().zip(entries.chunks_exact(8));
    pages.any(|(present, entry)| present & 1 == 0 && swapped(entry))
}

fn membarrier(command: libc::c_int) -> libc::c_long {
    let _errno = KeepErrno::new();
    // SAFETY: the call takes only numbers, and accesses no memory of the process.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0) }
}

/// Returns whether [`fence_every_thread`] works: on Linux 4.14 and later, unless a filter forbids
/// it.
pub fn can_fence_every_thread() -> bool {
    let wanted = libc::c_long::from(
        libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED | libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED,
    );
    let commands = membarrier(libc::MEMBARRIER_CMD_QUERY);
    commands >= 0 && commands & wanted == wanted
}

/// Executes a full fence in every thread of the process; see membarrier(2). Returns false if the
/// system refuses.
pub fn fence_every_thread() -> bool {
    let fence = || membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0;
    // Register only when the fence is first needed, because registering takes milliseconds in a
    // multithreaded process.
    fence() || (membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0 && fence())
}

/// Returns the milliseconds since some fixed moment, with a resolution of a few milliseconds.
/// Normally makes no system call, because the vDSO answers.
#[inline]
pub fn now() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes to the local variable only. This clock exists, so errno is
    // unchanged.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &raw mut time) };
    (time.tv_sec as u64).wrapping_mul(1000) + (time.tv_nsec as u64) / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_absent_and_swapped_would_be_read() {
        let mut entries = [0_u8; 24];
        assert!(!absent_in_swap(&[0, 0, 0], &entries), "never written");
        entries[15] = 1 << 6;
        assert!(absent_in_swap(&[1, 0, 1], &entries));
        assert!(!absent_in_swap(&[1, 1, 0], &entries), "in the swap cache");
    }

    /// Returns the parts that are reported for a region of `units` stretches, and their total size
    /// in units. Each part counts as dropped.
    fn told(units: usize, is_swapped: impl Fn(usize) -> bool) -> (Vec<(usize, usize)>, usize) {
        let mut told = Vec::new();
        let swapped = swapped_stretches(
            UNIT,
            units * UNIT,
            |place| is_swapped(place / UNIT - 1),
            |place, size| {
                told.push((place / UNIT - 1, size / UNIT));
                true
            },
        );
        (told, swapped / UNIT)
    }

    #[test]
    fn a_part_that_could_not_be_dropped_does_not_count() {
        let second = |place: usize, _: usize| place == 2 * UNIT;
        for (units, expected) in [(4, UNIT), (32, 0)] {
            let dropped = swapped_stretches(UNIT, units * UNIT, |_| true, second);
            assert_eq!(dropped, expected);
        }
    }

    #[test]
    fn stretches_of_a_small_region_are_told_of_one_by_one() {
        assert_eq!(told(16, |_| false), (vec![], 0));
        let some = |unit| unit == 3 || unit == 15;
        assert_eq!(told(16, some), (vec![(3, 1), (15, 1)], 2));
    }

    #[test]
    fn a_large_region_is_told_of_as_a_whole_by_a_sample() {
        assert_eq!(
            told(32, |unit| unit % 2 == 1),
            (vec![], 0),
            "not in the sample"
        );
        assert_eq!(told(32, |unit| unit == 30), (vec![(0, 32)], 32));
        let looked = core::cell::Cell::new(0);
        let count = |_| {
            looked.set(looked.get() + 1);
            false
        };
        assert_eq!(told(UNIT, count), (vec![], 0));
        assert_eq!(looked.get(), LOOKED_AT);
    }
}
