//! Applies new settings, also to memory that is already free.

use crate::config::{self, Config};
use crate::registry::SHARED;
use crate::worker;

/// Changes the settings. Before it returns, it empties caches that have borrowed more than the new
/// budget into the pool. It then returns dirty memory above the new cap to the system, even from
/// other threads' caches. A region that another thread is freeing at the same time may still follow
/// the old settings.
///
/// ```
/// use std::time::Duration;
/// use heapdrome_lgalloc::{Config, configure};
///
/// configure(&Config {
///     dirty_cap: 256 << 20,
///     worker_interval: Some(Duration::from_secs(1)),
///     ..Config::default()
/// });
/// ```
pub fn configure(config: &Config) {
    config::set(config);
    worker::start_if_wanted();
    SHARED.hold_to_policy();
}
