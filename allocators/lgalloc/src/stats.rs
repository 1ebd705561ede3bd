//! Statistics of the allocator.

use core::sync::atomic::Ordering::Relaxed;

use crate::class::{CLASSES, SizeClass};
use crate::registry::{CLEAN, SHARED};
use crate::{purge, relocate};

/// Statistics of one class. Threads without a cache count neither allocations nor deallocations. In
/// a busy program, the figures describe slightly different moments. A region that grows or shrinks
/// counts as deallocated in its old class and as allocated in its new class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct ClassStats {
    /// Size of the class's regions in bytes.
    pub bytes: usize,
    /// Number of allocations since the process started.
    pub allocations: usize,
    /// Number of deallocations since the process started.
    pub deallocations: usize,
    /// Number of allocations for which the thread's cache had no region. Excludes growth and
    /// shrinking in place.
    pub slow_allocations: usize,
    /// Number of free regions in threads' caches.
    pub cached_regions: usize,
    /// Number of free regions with contents in the shared pool.
    pub dirty_regions: usize,
    /// Number of free regions without contents: never used, purged, or emptied by a move.
    pub clean_regions: usize,
}

/// Statistics of the whole allocator. The C header declares the same structures.
#[derive(Clone, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Stats {
    /// Statistics of every class, by index.
    pub classes: [ClassStats; CLASSES],
    /// Number of areas of address space.
    pub areas: usize,
    /// Bytes of reserved address space.
    pub reserved_bytes: usize,
    /// Bytes that count against the cap: free memory with contents, and room that caches have
    /// borrowed. May exceed the cap for a moment, while a lowered cap is being enforced or while
    /// the bytes in a cache are recounted. May also exceed a lowered cap by the region that a
    /// thread was freeing, until that thread frees another region. In the child of a fork, lacks
    /// the regions in the forking thread's cache until that thread frees a region.
    pub dirty_bytes: usize,
    /// Bytes whose memory was returned to the system.
    pub purged_bytes: usize,
    /// Bytes in parts of regions that were dropped because they were at least partly in swap.
    /// `purged_bytes` includes them.
    pub stale_bytes: usize,
    /// Bytes that moved with their pages when a region grew.
    pub moved_bytes: usize,
    /// Bytes that were copied because the system refused to move their pages.
    pub copied_bytes: usize,
    /// Number of purges that the system refused.
    pub purge_failures: usize,
}

fn class_stats(class: SizeClass) -> ClassStats {
    let mut stats = ClassStats {
        bytes: class.bytes(),
        allocations: 0,
        deallocations: 0,
        slow_allocations: 0,
        cached_regions: 0,
        dirty_regions: 0,
        clean_regions: 0,
    };
    for slot in SHARED.claimed() {
        let counters = &slot.counters[class.index()];
        // Relaxed: statistics, on which no other memory depends.
        stats.allocations += counters.allocations.load(Relaxed);
        stats.deallocations += counters.deallocations.load(Relaxed);
        stats.slow_allocations += counters.slow.load(Relaxed);
        stats.cached_regions += slot.count(class);
    }
    stats.dirty_regions = SHARED.dirty.lock().count(class);
    stats.clean_regions = CLEAN.lock().free_blocks(class);
    stats
}

/// Returns the current statistics. Does not allocate.
///
/// ```
/// let stats = heapdrome_lgalloc::stats();
/// println!("{} MiB are free and still hold contents", stats.dirty_bytes >> 20);
/// ```
#[must_use]
pub fn stats() -> Stats {
    let classes = core::array::from_fn(|index| {
        class_stats(SizeClass::of_index(index).unwrap_or(SizeClass::SMALLEST))
    });
    let (areas, reserved_bytes) = CLEAN.lock().reserved();
    let dropped = purge::dropped();
    let (moved_bytes, copied_bytes) = relocate::totals();
    Stats {
        classes,
        areas,
        reserved_bytes,
        dirty_bytes: SHARED.cap.held(),
        purged_bytes: dropped.purged_bytes,
        stale_bytes: dropped.stale_bytes,
        moved_bytes,
        copied_bytes,
        purge_failures: dropped.failures,
    }
}
