//! Cost of a page fault on this machine.

use std::ptr::null_mut;

/// Number of pages that a measurement touches.
const PAGES: usize = 1024;
const TRIES: usize = 9;

const PAGE: usize = 4096;

/// Measures the processor time of a page fault that maps an empty page of 4 KiB, in seconds: the
/// median of several tries. `None` if too few tries could map memory.
pub(crate) fn cost() -> Option<f64> {
    let mut tries: Vec<f64> = (0..TRIES).map_while(|_| once()).collect();
    tries.sort_by(f64::total_cmp);
    tries.get(TRIES / 2).copied()
}

/// Measures the cost in one try. `None` if memory cannot be mapped.
fn once() -> Option<f64> {
    let length = PAGES * PAGE;
    // SAFETY: the mapping is new and private to this function. All writes are within `length`, and
    // none follows the `munmap`.
    unsafe {
        let (access, kind) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
        );
        let start = libc::mmap(null_mut(), length, access, kind, -1, 0);
        if start == libc::MAP_FAILED {
            return None;
        }
        // A kernel without huge pages refuses the advice, and uses small pages anyway.
        libc::madvise(start, length, libc::MADV_NOHUGEPAGE);
        let before = processor_time();
        for page in 0..PAGES {
            start.cast::<u8>().add(page * PAGE).write_volatile(1);
        }
        let spent = processor_time() - before;
        libc::munmap(start, length);
        Some(spent / PAGES as f64)
    }
}

/// Returns the processor time of this thread in seconds.
fn processor_time() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is writable and outlives the call.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_page_fault_takes_between_a_tenth_and_a_hundred_microseconds() {
        let cost = super::cost().expect("memory can be mapped");
        assert!((1e-7..1e-4).contains(&cost), "{cost}");
    }
}
