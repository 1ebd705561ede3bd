//! Dropping of contents, and statistics of it.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use heapdrome_pages::{Linux, Pages};

use crate::class::SizeClass;
use crate::config;
use crate::os::{PageMap, swapped_stretches};

static PURGED_BYTES: AtomicUsize = AtomicUsize::new(0);
static STALE_BYTES: AtomicUsize = AtomicUsize::new(0);
static PURGE_FAILURES: AtomicUsize = AtomicUsize::new(0);

/// Drops the contents of a range of whole pages. Returns whether the system did.
pub fn purge(start: usize, size: usize) -> bool {
    let place = NonNull::new(start as *mut u8);
    // SAFETY: the caller holds the range: its region is free, or its user asks for this.
    let purged = place.is_some_and(|place| unsafe { Linux.purge(place, size) });
    // Relaxed: statistics, on which no other memory depends.
    if purged {
        PURGED_BYTES.fetch_add(size, Relaxed);
    } else {
        PURGE_FAILURES.fetch_add(1, Relaxed);
    }
    purged
}

/// Drops the contents of a region that would have to be read from swap.
pub fn freshen(start: usize, class: SizeClass) {
    let mut map = PageMap::default();
    let dropped = drop_swapped(start, class, |stretch| map.has_swapped(stretch));
    STALE_BYTES.fetch_add(dropped, Relaxed);
}

/// Drops the stretches of 2 MiB for which `is_swapped` is true; returns the number of bytes
/// dropped.
fn drop_swapped(start: usize, class: SizeClass, is_swapped: impl FnMut(usize) -> bool) -> usize {
    swapped_stretches(start, class.bytes(), is_swapped, drop_with_tables)
}

/// Drops contents, and the page tables of the range.
///
/// Without a page table, 2 MiB become one huge page at the first write, and the system makes room
/// for all of it in one step. With a table, each of 512 pages waits for room by itself. Linux 6.14
/// and later free the table together with the contents, unless they are interrupted. Then no
/// contents are left, and a second call frees the table.
fn drop_with_tables(start: usize, size: usize) {
    purge(start, size);
    if let Some(place) = NonNull::new(start as *mut u8).filter(|_| config::huge_pages()) {
        // SAFETY: as in `purge`. If it fails, the table stays.
        unsafe { Linux.purge(place, size) };
    }
}

/// Totals of dropped contents.
#[derive(Clone, Copy, Debug)]
pub struct Dropped {
    /// Bytes whose memory was returned to the system.
    pub purged_bytes: usize,
    /// Bytes of those that were in swap when their region was wanted again.
    pub stale_bytes: usize,
    /// Number of times that the system refused to take memory back.
    pub failures: usize,
}

/// Returns the totals so far.
pub fn dropped() -> Dropped {
    Dropped {
        purged_bytes: PURGED_BYTES.load(Relaxed),
        stale_bytes: STALE_BYTES.load(Relaxed),
        failures: PURGE_FAILURES.load(Relaxed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::UNIT;
    use heapdrome_pages::Access;

    /// Returns the contents of a region of four stretches after those reported as swapped were
    /// dropped, and how many bytes were dropped.
    fn left_where(is_swapped: impl Fn(usize) -> bool) -> ([u64; 4], usize) {
        let class = SizeClass::of_bytes(4 * UNIT).expect("a class");
        let region = Linux.reserve(4 * UNIT, UNIT, Access::ReadWrite);
        let region = region.expect("address space");
        // SAFETY: four stretches were reserved, for this test alone.
        let ends = [0, 1, 2, 3]
            .map(|stretch| unsafe { region.add((stretch + 1) * UNIT - 8).cast::<u64>() });
        for (number, end) in ends.iter().enumerate() {
            // SAFETY: four stretches were reserved, for this test alone.
            unsafe { end.write(number as u64 + 1) };
        }
        let start = region.as_ptr().expose_provenance();
        let dropped = drop_swapped(start, class, |place| is_swapped((place - start) / UNIT));
        // SAFETY: four stretches were reserved, for this test alone.
        let left = ends.map(|end| unsafe { end.read() });
        // SAFETY: the region was reserved above, and is no longer used.
        assert!(unsafe { Linux.release(region, 4 * UNIT) });
        (left, dropped)
    }

    #[test]
    fn stretches_in_swap_lose_their_contents_and_no_others_do() {
        let before = dropped().purged_bytes;
        assert_eq!(left_where(|_| false), ([1, 2, 3, 4], 0));
        assert_eq!(
            left_where(|number| number % 2 == 1),
            ([1, 0, 3, 0], 2 * UNIT)
        );
        assert_eq!(left_where(|_| true), ([0; 4], 4 * UNIT));
        // Other tests purge at the same time.
        assert!(dropped().purged_bytes - before >= 6 * UNIT);
    }
}
