//! What the allocator has done and what it holds.

use core::sync::atomic::Ordering::Relaxed;

use crate::class::{CLASSES, SizeClass};
use crate::registry::{CLEAN, SHARED};
use crate::{purge, relocate};

/// One class. Counts are those of threads that have a cache; a thread adds while others read, so
/// that figures of a busy program are a moment apart. A region that grows or shrinks counts as
/// deallocated in the class that it leaves and as allocated in the one that it enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct ClassStats {
    /// Size of its regions.
    pub bytes: usize,
    /// Allocations.
    pub allocations: usize,
    /// Deallocations.
    pub deallocations: usize,
    /// Allocations that a thread's own cache did not serve; growth and shrinking in place are not
    /// among them.
    pub slow_allocations: usize,
    /// Free regions in caches of threads.
    pub cached_regions: usize,
    /// Free regions with contents in the shared pool.
    pub dirty_regions: usize,
    /// Free regions without memory.
    pub clean_regions: usize,
}

/// The whole allocator. The C header declares the same structures.
#[derive(Clone, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Stats {
    /// Every class, from 2 MiB on.
    pub classes: [ClassStats; CLASSES],
    /// Areas of address space.
    pub areas: usize,
    /// Bytes of address space.
    pub reserved_bytes: usize,
    /// Free memory with contents, and what caches may still fill. It is above the cap until a
    /// lowered cap has returned the excess, while what a cache holds is counted anew (and thus
    /// twice), and by what a thread was just freeing when the cap was lowered, until that thread
    /// frees the next. In the child of a fork it lacks what the thread that forked had cached,
    /// until that thread frees a region.
    pub dirty_bytes: usize,
    /// Bytes whose memory went back to the system, in all.
    pub purged_bytes: usize,
    /// Bytes of those that were dropped rather than read from swap.
    pub stale_bytes: usize,
    /// Bytes that moved with their pages when a region grew.
    pub moved_bytes: usize,
    /// Bytes that were copied because the system would not move them.
    pub copied_bytes: usize,
    /// Times the system would not take memory back.
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
        // Relaxed: statistics.
        stats.allocations += counters.allocations.load(Relaxed);
        stats.deallocations += counters.deallocations.load(Relaxed);
        stats.slow_allocations += counters.slow.load(Relaxed);
        stats.cached_regions += slot.count(class);
    }
    stats.dirty_regions = SHARED.dirty.lock().count(class);
    stats.clean_regions = CLEAN.lock().free_blocks(class);
    stats
}

/// Statistics as they are now. It allocates nothing.
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
