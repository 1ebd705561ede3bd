//! Drops the contents of regions, and counts the dropped bytes.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use heapdrome_pages::{Linux, Pages};

use crate::class::SizeClass;
use crate::config;
use crate::os::{PageMap, swapped_stretches};

static PURGED_BYTES: AtomicUsize = AtomicUsize::new(0);
static STALE_BYTES: AtomicUsize = AtomicUsize::new(0);
static PURGE_FAILURES: AtomicUsize = AtomicUsize::new(0);

/// Drops the contents of a range of whole pages. Returns false if the system refuses.
pub fn purge(start: usize, size: usize) -> bool {
    let place = NonNull::new(start as *mut u8);
    // SAFETY: callers pass whole pages of a region of this library, whose contents no code needs:
    // the region is free, its contents were copied, or its user drops them.
    let purged = place.is_some_and(|place| unsafe { Linux.purge(place, size) });
    // Relaxed: statistics, on which no other memory depends.
    if purged {
        PURGED_BYTES.fetch_add(size, Relaxed);
    } else {
        PURGE_FAILURES.fetch_add(1, Relaxed);
    }
    purged
}

/// Drops the contents of the parts of a region that [`swapped_stretches`] reports as swapped, and
/// keeps the other parts.
pub fn freshen(start: usize, class: SizeClass) {
    let mut map = PageMap::default();
    let dropped = drop_swapped(start, class, |stretch| map.has_swapped(stretch));
    STALE_BYTES.fetch_add(dropped, Relaxed);
}

/// Drops the contents of the stretches for which `is_swapped` returns true. In a region above 32
/// MiB, checks only a sample, and drops all contents if one stretch of the sample is in swap.
/// Returns the number of dropped bytes.
fn drop_swapped(start: usize, class: SizeClass, is_swapped: impl FnMut(usize) -> bool) -> usize {
    swapped_stretches(start, class.bytes(), is_swapped, drop_with_tables)
}

/// Drops the contents and page tables of a range. Returns false if the system refuses.
///
/// Without a page table, the first write turns 2 MiB into one huge page, and the system makes room
/// for it in one step. With a table, the system makes room for each of 512 pages separately. Linux
/// 6.14 and later free the table together with the contents, unless the call is interrupted. A
/// second call then frees the table, so it is made if the settings enable huge pages.
fn drop_with_tables(start: usize, size: usize) -> bool {
    let purged = purge(start, size);
    if let Some(place) = NonNull::new(start as *mut u8).filter(|_| config::huge_pages()) {
        // SAFETY: the range consists of whole pages of a free region, whose contents no code needs.
        // If this call fails, only the page table stays.
        unsafe { Linux.purge(place, size) };
    }
    purged
}

/// Statistics of dropped contents.
#[derive(Clone, Copy, Debug)]
pub struct Dropped {
    /// Bytes whose memory was returned to the system.
    pub purged_bytes: usize,
    /// Bytes in parts of regions that were dropped because they were at least partly in swap when
    /// the region was reused. `purged_bytes` includes them.
    pub stale_bytes: usize,
    /// Number of purges that the system refused.
    pub failures: usize,
}

/// Returns the statistics since the process started.
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

    /// Drops the stretches that `is_swapped` reports from a region of four stretches. Returns the
    /// last word of each stretch, and the number of dropped bytes.
    fn left_where(is_swapped: impl Fn(usize) -> bool) -> ([u64; 4], usize) {
        let class = SizeClass::of_bytes(4 * UNIT).expect("a class");
        let region = Linux.reserve(4 * UNIT, UNIT, Access::ReadWrite);
        let region = region.expect("address space");
        // SAFETY: four stretches were reserved, and only this test uses them.
        let ends = [0, 1, 2, 3]
            .map(|stretch| unsafe { region.add((stretch + 1) * UNIT - 8).cast::<u64>() });
        for (number, end) in ends.iter().enumerate() {
            // SAFETY: four stretches were reserved, and only this test uses them.
            unsafe { end.write(number as u64 + 1) };
        }
        let start = region.as_ptr().expose_provenance();
        let dropped = drop_swapped(start, class, |place| is_swapped((place - start) / UNIT));
        // SAFETY: four stretches were reserved, and only this test uses them.
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
        // Other tests purge at the same time, so the count may be higher.
        assert!(dropped().purged_bytes - before >= 6 * UNIT);
    }
}
