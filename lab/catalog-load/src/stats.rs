//! Counts of all allocations, in builds with the feature `stats`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use heapdrome_schema::Bytes;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, Stats, StatsAlloc};

/// The system's allocator, whose calls `stats_alloc` counts. This type adds the peak of the
/// requested bytes, which that crate does not record.
pub(crate) struct Counted {
    inner: &'static StatsAlloc<System>,
    live: AtomicUsize,
    peak: AtomicUsize,
}

pub(crate) static INNER: Counted = Counted {
    inner: &INSTRUMENTED_SYSTEM,
    live: AtomicUsize::new(0),
    peak: AtomicUsize::new(0),
};

impl Counted {
    // Relaxed: no other data depend on the counters. Bytes are added before a block is allocated
    // and subtracted after it is freed. So with concurrent threads the peak may be a few blocks too
    // high.
    fn grow(&self, bytes: usize) {
        let live = self.live.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if live > self.peak.load(Ordering::Relaxed) {
            self.peak.fetch_max(live, Ordering::Relaxed);
        }
    }

    fn shrink(&self, bytes: usize) {
        self.live.fetch_sub(bytes, Ordering::Relaxed);
    }
}

// SAFETY: every call is forwarded unchanged to `inner`, which upholds the contract of
// `GlobalAlloc`, and its result is returned.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.grow(layout.size());
        // SAFETY: the caller passes a layout whose size is not zero, as `inner` requires.
        unsafe { self.inner.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.grow(layout.size());
        // SAFETY: the caller passes a layout whose size is not zero, as `inner` requires.
        unsafe { self.inner.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller passes a block of this allocator with its layout, and `inner` serves
        // all blocks.
        unsafe { self.inner.dealloc(block, layout) };
        self.shrink(layout.size());
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Count only the growth, before the call: a block that moves exists twice for a moment, but
        // is requested once.
        self.grow(size.saturating_sub(layout.size()));
        // SAFETY: the caller passes a block of this allocator with its layout, and `inner` serves
        // all blocks. The caller also ensures that `size` is not zero and does not overflow `isize`
        // when rounded up.
        let moved = unsafe { self.inner.realloc(block, layout, size) };
        self.shrink(layout.size().saturating_sub(size));
        moved
    }
}

/// Counts of the allocations in a part of the run.
pub(crate) struct Counts(Region<'static, System>);

impl Counts {
    /// Starts to count the allocations of the process.
    pub(crate) fn start() -> Self {
        Self(Region::new(INNER.inner))
    }

    pub(crate) fn so_far(&self) -> Stats {
        self.0.change()
    }
}

/// Returns the process's peak of bytes requested and not freed.
pub(crate) fn peak_requested() -> Bytes {
    Bytes(INNER.peak.load(Ordering::Relaxed) as u64)
}

/// Prints the counts to the user, and adds them to a report.
pub(crate) fn tell(stats: &Stats, figures: &mut BTreeMap<String, f64>) {
    let peak = peak_requested();
    eprintln!(
        "heapdrome-catalog: {} allocations of {}, {} deallocations of {}, {} reallocations; {} \
         requested at the peak",
        stats.allocations,
        Bytes(stats.bytes_allocated as u64),
        stats.deallocations,
        Bytes(stats.bytes_deallocated as u64),
        stats.reallocations,
        peak
    );
    let counted = [
        ("allocations", stats.allocations as f64),
        ("deallocations", stats.deallocations as f64),
        ("reallocations", stats.reallocations as f64),
        ("allocated_bytes", stats.bytes_allocated as f64),
        ("deallocated_bytes", stats.bytes_deallocated as f64),
        ("counted_peak_requested_bytes", peak.as_f64()),
    ];
    figures.extend(counted.map(|(name, value)| (name.to_owned(), value)));
}
