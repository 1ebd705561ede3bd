//! Settings of the whole process. They may change at any time and apply from then on. A lowered cap
//! on dirty memory and a lowered budget also apply to memory that is already free.

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
    /// Maximum number of bytes of free memory that one thread keeps for itself, over all classes. A
    /// lowered budget also applies to memory that is already free: [`configure`](crate::configure)
    /// empties caches that had borrowed more into the shared pool.
    pub thread_budget: usize,
    /// Maximum number of bytes of free memory with contents, over all classes and threads. A
    /// lowered cap also applies to memory that is already free: [`configure`](crate::configure)
    /// returns the excess to the system.
    pub dirty_cap: usize,
    /// Time after which a free region is checked before it is used again. If parts of it are in
    /// swap, their contents are dropped instead of read back.
    pub stale_after: Duration,
    /// Whether new areas ask for huge pages.
    pub huge_pages: bool,
    /// Interval at which a background thread returns the memory of regions that have been free for
    /// a whole interval, in the shared pool or in a thread's cache. With `None` there is no such
    /// thread, and only the cap limits the kept memory.
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

/// Converts a duration to whole milliseconds, in which the settings are stored.
pub fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Stores the settings only; [`configure`](crate::configure) also applies them to memory that is
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

/// Returns the staleness threshold. Every allocation reads it, also where it is inlined into
/// another crate.
#[inline]
pub fn stale_after_ms() -> u64 {
    STALE_AFTER_MS.load(Relaxed)
}

pub fn huge_pages() -> bool {
    HUGE_PAGES.load(Relaxed)
}

/// Returns the interval of the worker; zero if no worker is wanted.
pub fn worker_interval_ms() -> u64 {
    WORKER_INTERVAL_MS.load(Relaxed)
}
