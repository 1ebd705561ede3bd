//! Settings of the whole process. They may change at any time.

use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

// Relaxed throughout: the settings are independent, and a late reader uses the previous value.
static THREAD_BUDGET: AtomicUsize = AtomicUsize::new(32 << 20);
static DIRTY_CAP: AtomicUsize = AtomicUsize::new(1 << 30);
static STALE_AFTER_MS: AtomicU64 = AtomicU64::new(100);
static HUGE_PAGES: AtomicBool = AtomicBool::new(true);
static WORKER_INTERVAL_MS: AtomicU64 = AtomicU64::new(0);

/// Settings of the allocator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Maximum number of bytes of free memory in one thread's cache, over all classes. When the
    /// budget is lowered, [`configure`](crate::configure) empties caches that have borrowed more
    /// than the budget into the shared pool.
    pub thread_budget: usize,
    /// Maximum number of bytes of free memory with contents, over all classes and threads. When the
    /// cap is lowered, [`configure`](crate::configure) returns at least the excess to the system.
    pub dirty_cap: usize,
    /// Time after which a free region is checked for swapped parts before it is reused. The
    /// contents of these parts are dropped instead of read from swap. A part is 2 MiB, or the whole
    /// region if it is larger than 32 MiB.
    pub stale_after: Duration,
    /// Whether new areas request huge pages.
    pub huge_pages: bool,
    /// Interval at which a background thread runs. The thread returns to the system the memory of
    /// regions that have been free for a whole interval, in the shared pool or in a thread's cache.
    /// `None` means no background thread: then only the cap limits free memory with contents.
    pub worker_interval: Option<Duration>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            thread_budget: 32 << 20,
            dirty_cap: 1 << 30,
            stale_after: Duration::from_millis(100),
            huge_pages: true,
            worker_interval: None,
        }
    }
}

/// Converts a duration to whole milliseconds, the unit of the stored settings.
pub fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Stores the settings. Only [`configure`](crate::configure) also applies them to memory that is
/// already free.
pub fn set(config: &Config) {
    THREAD_BUDGET.store(config.thread_budget, Relaxed);
    DIRTY_CAP.store(config.dirty_cap, Relaxed);
    STALE_AFTER_MS.store(milliseconds(config.stale_after), Relaxed);
    HUGE_PAGES.store(config.huge_pages, Relaxed);
    let interval = config
        .worker_interval
        .map_or(0, |interval| milliseconds(interval).max(1));
    WORKER_INTERVAL_MS.store(interval, Relaxed);
}

pub fn thread_budget() -> usize {
    THREAD_BUDGET.load(Relaxed)
}

pub fn dirty_cap() -> usize {
    DIRTY_CAP.load(Relaxed)
}

/// Returns the staleness threshold in milliseconds. Inlined into other crates, since the fast path
/// of an allocation reads it.
#[inline]
pub fn stale_after_ms() -> u64 {
    STALE_AFTER_MS.load(Relaxed)
}

pub fn huge_pages() -> bool {
    HUGE_PAGES.load(Relaxed)
}

/// Returns the interval of the worker in milliseconds; zero if no worker is wanted.
pub fn worker_interval_ms() -> u64 {
    WORKER_INTERVAL_MS.load(Relaxed)
}
