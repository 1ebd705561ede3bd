//! New settings, applied to what is free already.

use crate::config::{self, Config};
use crate::registry::SHARED;
use crate::worker;

/// Changes the settings. Where caches hold more than the budget allows, they are emptied into the
/// pool, and where more is dirty than the cap allows, it returns memory to the system, from other
/// threads' caches too, before it returns. What a thread is just freeing may still go by the
/// settings before.
pub fn configure(config: &Config) {
    config::set(config);
    worker::start_if_wanted();
    SHARED.hold_to_policy();
}
