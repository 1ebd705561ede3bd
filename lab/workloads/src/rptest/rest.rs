//! Waiting for another thread without taking processor time from the figures.

use std::time::Duration;

/// Short naps become long ones: first others may run, then this thread sleeps.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    taken: u32,
}

impl Rest {
    const YIELDS: u32 = 8;
    const NAP: Duration = Duration::from_micros(50);

    /// Waits a little.
    pub(crate) fn take(&mut self) {
        match self.taken < Self::YIELDS {
            true => std::thread::yield_now(),
            false => std::thread::sleep(Self::NAP),
        }
        self.taken = self.taken.saturating_add(1);
    }
}
