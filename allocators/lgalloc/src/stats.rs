//! Statistics: what the allocator has done and what it holds.

use core::sync::atomic::Ordering::Relaxed;

use crate::class::{CLASSES, SizeClass};
use crate::registry::{CLEAN, SHARED};
use crate::{purge, relocate};

/// Statistics of one class. They count threads that have a cache. A thread adds while others read,
/// so figures of a busy program are taken at slightly different moments. A region that grows or
/// shrinks counts as deallocated in the class that it leaves and as allocated in the one that it
/// enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct ClassStats {
    /// Size of the regions.
    pub bytes: usize,
    /// Number of allocations.
    pub allocations: usize,
    /// Number of deallocations.
    pub deallocations: usize,
    /// Number of allocations that a thread's own cache did not serve, without growth and shrinking
    /// in place.
    pub slow_allocations: usize,
    /// Number of free regions in caches of threads.
    pub cached_regions: usize,
    /// Number of free regions with contents in the shared pool.
    pub dirty_regions: usize,
    /// Number of free regions without memory.
    pub clean_regions: usize,
}

/// Statistics of the whole allocator. The C header declares the same structures.
#[derive(Clone, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Stats {
    /// Statistics of every class, from 2 MiB on.
    pub classes: [ClassStats; CLASSES],
    /// Number of areas of address space.
    pub areas: usize,
    /// Bytes of reserved address space.
    pub reserved_bytes: usize,
    /// Bytes of free memory with contents, and those that caches may still fill. They exceed the
    /// cap until a lowered cap has returned the excess. They also exceed it while the bytes in a
    /// cache are counted again (and thus twice), and by what a thread was freeing when the cap was
    /// lowered, until that thread frees the next region. In the child of a fork, they lack what the
    /// forking thread had cached, until that thread frees a region.
    pub dirty_bytes: usize,
    /// Total of bytes whose memory was returned to the system.
    pub purged_bytes: usize,
    /// Bytes of those that were dropped rather than read from swap.
    pub stale_bytes: usize,
    /// Bytes that moved with their pages when a region grew.
    pub moved_bytes: usize,
    /// Bytes that were copied because the system would not move them.
    pub copied_bytes: usize,
    /// Number of times that the system refused to take memory back.
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

/// Returns the current statistics. Allocates nothing.
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
