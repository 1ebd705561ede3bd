//! Cost of a page fault on this machine.

use std::ptr::null_mut;

/// Number of pages that each try touches.
const PAGES: usize = 1024;
const TRIES: usize = 9;

/// Measures the processor time of a page fault that maps an empty small page, in seconds: the
/// median of several tries. `None` if no memory can be mapped.
pub(crate) fn cost() -> Option<f64> {
    // SAFETY: `sysconf` has no preconditions.
    let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()?;
    median((0..TRIES).map_while(|_| once(page)).collect())
}

/// Returns the middle value, or the higher of the two middle values; `None` if the list is empty.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Measures the cost in one try, with pages of `page` bytes. `None` if memory cannot be mapped.
fn once(page: usize) -> Option<f64> {
    let length = PAGES * page;
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
        for place in 0..PAGES {
            start.cast::<u8>().add(place * page).write_volatile(1);
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
    fn the_median_is_that_of_the_tries_that_succeeded() {
        let of = |tries: &[f64]| super::median(tries.to_vec());
        assert_eq!(of(&[3.0, 1.0, 9.0, 2.0, 4.0]), Some(3.0));
        assert_eq!(of(&[2.0]), Some(2.0));
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn a_page_fault_takes_between_a_tenth_and_a_hundred_microseconds() {
        let cost = super::cost().expect("memory can be mapped");
        assert!((1e-7..1e-4).contains(&cost), "{cost}");
    }
}
