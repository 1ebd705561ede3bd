//! Settings and statistics for C.

use core::ffi::c_int;
use std::time::Duration;

use crate::config::{Config, milliseconds};
use crate::configure::configure;
use crate::pool;
use crate::stats::{Stats, stats};

/// C version of [`Config`].
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct HeapdromeLgallocConfig {
    thread_budget: usize,
    dirty_cap: usize,
    stale_after_ms: u64,
    /// Zero means no worker.
    worker_interval_ms: u64,
    huge_pages: c_int,
}

impl From<&Config> for HeapdromeLgallocConfig {
    fn from(config: &Config) -> Self {
        let interval = config.worker_interval.map_or(0, milliseconds);
        Self {
            thread_budget: config.thread_budget,
            dirty_cap: config.dirty_cap,
            stale_after_ms: milliseconds(config.stale_after),
            worker_interval_ms: interval,
            huge_pages: config.huge_pages.into(),
        }
    }
}

impl From<&HeapdromeLgallocConfig> for Config {
    fn from(config: &HeapdromeLgallocConfig) -> Self {
        let interval = config.worker_interval_ms;
        Self {
            thread_budget: config.thread_budget,
            dirty_cap: config.dirty_cap,
            stale_after: Duration::from_millis(config.stale_after_ms),
            worker_interval: (interval != 0).then(|| Duration::from_millis(interval)),
            huge_pages: config.huge_pages != 0,
        }
    }
}

/// Writes the default settings.
///
/// # Safety
///
/// `config` is valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heapdrome_lgalloc_default_config(config: *mut HeapdromeLgallocConfig) {
    // SAFETY: `config` is valid for writing, by this function's contract.
    unsafe { config.write((&Config::default()).into()) };
}

/// Changes all settings of the whole process. Empties caches that have borrowed more than the new
/// budget into the shared pool. Then returns free memory to the system until the new cap holds.
///
/// # Safety
///
/// `config` is valid for reading, and all of its fields are initialised.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heapdrome_lgalloc_configure(config: *const HeapdromeLgallocConfig) {
    // SAFETY: `config` is valid for reading and initialised, by this function's contract.
    configure(&unsafe { &*config }.into());
}

/// Writes the current statistics.
///
/// # Safety
///
/// `to` is valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heapdrome_lgalloc_stats(to: *mut Stats) {
    // SAFETY: `to` is valid for writing, by this function's contract; `Stats` has C's layout.
    unsafe { to.write(stats()) };
}

/// Returns the memory of every free region to the system.
#[unsafe(no_mangle)]
pub extern "C" fn heapdrome_lgalloc_empty() {
    pool::empty_everything();
}
