//! Settings of the whole process. They may change at any time and hold from then on; a lowered cap
//! on dirty memory and a lowered budget also hold for what is free already.

use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

// Relaxed throughout: each setting stands for itself, and a late reader uses the one before.
static THREAD_BUDGET: AtomicUsize = AtomicUsize::new(32 << 20);
static DIRTY_CAP: AtomicUsize = AtomicUsize::new(1 << 30);
static STALE_AFTER_MS: AtomicU64 = AtomicU64::new(100);
static HUGE_PAGES: AtomicBool = AtomicBool::new(true);
static WORKER_INTERVAL_MS: AtomicU64 = AtomicU64::new(0);

/// Settings of the allocator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Free memory that one thread keeps for itself, over all classes. A lowered budget holds for
    /// what is free already: [`configure`](crate::configure) moves what is in caches that had
    /// borrowed more to the shared pool.
    pub thread_budget: usize,
    /// Free memory with contents, over all classes and threads. A lowered cap holds for what is
    /// free already: [`configure`](crate::configure) returns the excess to the system.
    pub dirty_cap: usize,
    /// A region that has been free for longer is looked at before it is used again: where parts of
    /// it are in swap, its contents are dropped instead of being read back.
    pub stale_after: Duration,
    /// Whether new areas ask for huge pages.
    pub huge_pages: bool,
    /// How often a background thread returns the memory of regions that have been free for a whole
    /// interval, in the shared pool or in a thread's cache. `None`: no such thread; the cap alone
    /// bounds what is kept.
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

/// Whole milliseconds, as the settings are kept.
pub fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Changes the settings, and nothing else: [`configure`](crate::configure) also applies them to
/// what is free.
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

/// Read by every allocation, also where it is inlined into another crate.
#[inline]
pub fn stale_after_ms() -> u64 {
    STALE_AFTER_MS.load(Relaxed)
}

pub fn huge_pages() -> bool {
    HUGE_PAGES.load(Relaxed)
}

/// Zero where no worker is wanted.
pub fn worker_interval_ms() -> u64 {
    WORKER_INTERVAL_MS.load(Relaxed)
}
