//! New settings, applied to memory that is already free.

use crate::config::{self, Config};
use crate::registry::SHARED;
use crate::worker;

/// Changes the settings. Before it returns, caches that hold more than the budget allows are
/// emptied into the pool. If more memory is dirty than the cap allows, the excess is returned to
/// the system, also from other threads' caches. A region that a thread is just freeing may still
/// follow the previous settings.
pub fn configure(config: &Config) {
    config::set(config);
    worker::start_if_wanted();
    SHARED.hold_to_policy();
}
