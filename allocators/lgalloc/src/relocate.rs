//! Moves the contents of a region to a larger region. Pages move without being copied or read from
//! swap, unless the kernel refuses.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use heapdrome_pages::{KeepErrno, Linux, Pages, system};

use crate::class::UNIT;
use crate::config;
use crate::purge::purge;

static MOVED_BYTES: AtomicUsize = AtomicUsize::new(0);
static COPIED_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Returns the total number of bytes moved with their pages, and the total number of bytes copied.
pub fn totals() -> (usize, usize) {
    (MOVED_BYTES.load(Relaxed), COPIED_BYTES.load(Relaxed))
}

/// Moves `size` bytes from one region to another. The source stays reserved, without contents.
///
/// The kernel moves only pages of one mapping at a time, and earlier moves may have split the
/// region into several mappings. If a move is refused, both halves are moved separately. Memory
/// that the kernel refuses to move in pieces of 2 MiB is copied.
///
/// Aborts the process if the kernel unmaps the target and refuses the move, and the target cannot
/// be mapped again. That can happen if other code has mapped the target's addresses. The move
/// cannot be undone, because other parts of the region may already have moved.
///
/// # Safety
///
/// The caller owns both ranges of `size` bytes. Their starts are multiples of 2 MiB, `size` is 2
/// MiB times a power of two, and the ranges do not overlap.
pub unsafe fn relocate(from: NonNull<u8>, to: NonNull<u8>, size: usize) {
    // SAFETY: this function's contract is that of `move_pages`.
    if unsafe { move_pages(from, to, size) } {
        MOVED_BYTES.fetch_add(size, Relaxed);
    } else if size > UNIT {
        let half = size / 2;
        // SAFETY: both halves lie in the ranges that this function's contract covers. `size` is
        // above 2 MiB, so each half has 2 MiB times a power of two, and begins at a multiple of 2
        // MiB.
        unsafe {
            relocate(from, to, half);
            relocate(from.add(half), to.add(half), half);
        }
    } else {
        COPIED_BYTES.fetch_add(size, Relaxed);
        // SAFETY: by this function's contract, the caller owns both ranges, and they do not
        // overlap.
        unsafe { to.copy_from_nonoverlapping(from, size) };
        purge(from.as_ptr().addr(), size);
    }
}

/// Returns whether a range is one mapping. Tries to enlarge the range in place: if the range spans
/// several mappings, the kernel refuses with an error other than ENOMEM.
///
/// # Safety
///
/// The caller owns the range.
unsafe fn is_one_mapping(start: NonNull<u8>, size: usize) -> bool {
    let page = Linux.page_size();
    // SAFETY: the caller owns the range, by this function's contract. Without MREMAP_MAYMOVE the
    // range does not move, and at most one page is added behind it.
    let grown = unsafe { libc::mremap(start.as_ptr().cast(), size, size + page, 0) };
    if grown == libc::MAP_FAILED {
        return std::io::Error::last_os_error().raw_os_error() == Some(libc::ENOMEM);
    }
    // SAFETY: the page behind the range was just added.
    unsafe { libc::munmap(start.add(size).as_ptr().cast(), page) };
    true
}

/// Moves the pages of one range to another range, and drops the pages of the latter. Returns false
/// if no page has moved.
///
/// # Safety
///
/// The conditions of [`relocate`] hold.
unsafe fn move_pages(from: NonNull<u8>, to: NonNull<u8>, size: usize) -> bool {
    let _errno = KeepErrno::new();
    // A kernel may unmap the target before it refuses a source of several mappings, so check first.
    // SAFETY: the caller owns the range, by this function's contract.
    if !unsafe { is_one_mapping(from, size) } {
        return false;
    }
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP;
    // SAFETY: the caller owns both ranges, and no code needs the target's contents. The source
    // stays mapped, so no other code gets its addresses.
    let moved = unsafe {
        let (from, to) = (from.as_ptr().cast(), to.as_ptr().cast::<libc::c_void>());
        libc::mremap(from, size, size, flags, to)
    };
    if moved == libc::MAP_FAILED {
        // SAFETY: the caller owns the target, by this function's contract.
        unsafe { keep_target(to, size) };
        return false;
    }
    true
}

/// Maps the target of a failed move again if necessary, or aborts the process.
///
/// Assumes that a fully mapped target was not unmapped. This would be wrong only if other threads
/// had mapped this whole range since the move failed.
///
/// # Safety
///
/// The caller owns the range.
#[cold]
unsafe fn keep_target(start: NonNull<u8>, size: usize) {
    // SAFETY: the caller owns the range, by this function's contract.
    if !is_mapped(start, size) && !unsafe { map_again(start, size) } {
        system::write_error(
            b"lgalloc: the system would not move a region, and unmapped the place that it was to move to; \
              the place could not be mapped again, so that the process ends\n",
        );
        system::abort();
    }
}

/// Returns whether all of a range is mapped.
fn is_mapped(start: NonNull<u8>, size: usize) -> bool {
    // SAFETY: the call changes no contents, and private memory is never written to a file. The
    // kernel refuses a range that is not fully mapped.
    unsafe { libc::msync(start.as_ptr().cast(), size, libc::MS_ASYNC) == 0 }
}

/// Maps an unmapped range. Returns false if part of it is mapped, or if the system refuses.
///
/// # Safety
///
/// The caller owns the range.
unsafe fn map_again(start: NonNull<u8>, size: usize) -> bool {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags =
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: MAP_FIXED_NOREPLACE changes no existing mapping.
    let mapped = unsafe { libc::mmap(start.as_ptr().cast(), size, protection, flags, -1, 0) };
    // A kernel before 4.17 treats the address as a hint, and may map another range.
    let again = mapped == start.as_ptr().cast();
    if again && config::huge_pages() {
        // SAFETY: the range was just mapped.
        unsafe { Linux.advise(start, size, heapdrome_pages::Advice::HugePages) };
    }
    again
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapdrome_pages::Access;

    fn reserve(units: usize) -> NonNull<u8> {
        let reserved = Linux.reserve(units * UNIT, UNIT, Access::ReadWrite);
        reserved.expect("address space")
    }

    fn tag(start: NonNull<u8>, units: usize) {
        for unit in 0..units {
            // SAFETY: the range was reserved with at least `units` units.
            unsafe { start.add(unit * UNIT).cast::<u64>().write(unit as u64 + 7) };
        }
    }

    fn tags(start: NonNull<u8>, units: usize) -> std::vec::Vec<u64> {
        // SAFETY: the range was reserved with at least `units` units.
        (0..units)
            .map(|unit| unsafe { start.add(unit * UNIT).cast().read() })
            .collect()
    }

    /// Returns whether this kernel moves pages and leaves the source mapped (Linux 5.7 and later).
    fn kernel_moves() -> bool {
        let (from, to) = (reserve(1), reserve(1));
        // SAFETY: both ranges were just reserved, so they do not overlap, and only this test uses
        // them. They begin at multiples of 2 MiB, and the size is 2 MiB times a power of two.
        unsafe { move_pages(from, to, UNIT) }
    }

    #[test]
    fn contents_move_and_nothing_is_copied_where_the_kernel_can() {
        let (from, to) = (reserve(4), reserve(8));
        tag(from, 4);
        let before = totals();
        // SAFETY: both ranges were just reserved, so they do not overlap, and only this test uses
        // them. They begin at multiples of 2 MiB, and the size is 2 MiB times a power of two.
        unsafe { relocate(from, to, 4 * UNIT) };
        let after = totals();
        assert_eq!(tags(to, 4), [7, 8, 9, 10]);
        assert_eq!(tags(from, 4), [0; 4]);
        let done = (after.0 - before.0, after.1 - before.1);
        let wanted = if kernel_moves() {
            (4 * UNIT, 0)
        } else {
            (0, 4 * UNIT)
        };
        assert!(done.0 >= wanted.0 && done.1 >= wanted.1, "{done:?}");
    }

    /// An earlier move leaves a separate mapping in the middle of a region. The region can still be
    /// moved.
    #[test]
    fn a_region_of_several_mappings_moves() {
        let (small, region, to) = (reserve(1), reserve(4), reserve(4));
        tag(small, 1);
        tag(region, 4);
        // SAFETY: all ranges were just reserved, so they do not overlap, and only this test uses
        // them. They begin at multiples of 2 MiB, and each size is 2 MiB times a power of two.
        unsafe {
            relocate(small, region.add(UNIT), UNIT);
            assert!(!kernel_moves() || !is_one_mapping(region, 4 * UNIT));
            relocate(region, to, 4 * UNIT);
        }
        assert_eq!(tags(to, 4), [7, 7, 9, 10]);
        assert_eq!(tags(region, 4), [0; 4]);
    }

    #[test]
    fn a_target_that_is_still_mapped_is_kept() {
        let start = reserve(2);
        tag(start, 2);
        assert!(is_mapped(start, 2 * UNIT));
        // SAFETY: the range is reserved, and only this test uses it.
        unsafe { keep_target(start, 2 * UNIT) };
        assert_eq!(tags(start, 2), [7, 8]);
    }

    /// Tries up to 100 ranges of two units, and unmaps the first `units` of each. Returns whether
    /// `wanted` holds for one of them. One range may not suffice, because other tests may map
    /// memory in the hole.
    fn any_hole(units: usize, wanted: impl Fn(NonNull<u8>) -> bool) -> bool {
        (0..100).any(|_| {
            let start = reserve(2);
            tag(start, 2);
            // SAFETY: the range is reserved, and only this test uses it.
            assert!(unsafe { Linux.release(start, units * UNIT) });
            !is_mapped(start, 2 * UNIT) && wanted(start)
        })
    }

    #[test]
    fn a_target_that_was_unmapped_is_mapped_again() {
        // SAFETY: the test released the range. If other code has mapped part of it since, the call
        // only fails, and the range is not read.
        let again = |start| unsafe { map_again(start, 2 * UNIT) } && tags(start, 2) == [0, 0];
        assert!(any_hole(2, again));
    }

    #[test]
    fn a_target_of_which_others_have_a_part_is_left_alone() {
        // SAFETY: the test released the first unit, and the call changes no mapping. The second
        // unit is still reserved and used only by this test.
        let left = |start: NonNull<u8>| unsafe {
            !map_again(start, 2 * UNIT) && start.add(UNIT).cast::<u64>().read() == 8
        };
        assert!(any_hole(1, left));
    }
}
