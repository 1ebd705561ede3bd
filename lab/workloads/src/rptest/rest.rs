//! Waits for another thread without adding processor time to the figures.

use std::time::Duration;

/// Waits that grow: first the thread yields, later it sleeps.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    taken: u32,
}

impl Rest {
    const YIELDS: u32 = 8;
    const NAP: Duration = Duration::from_micros(50);

    /// Waits once: yields at first, and sleeps after [`YIELDS`](Self::YIELDS) calls.
    pub(crate) fn take(&mut self) {
        match self.taken < Self::YIELDS {
            true => std::thread::yield_now(),
            false => std::thread::sleep(Self::NAP),
        }
        self.taken = self.taken.saturating_add(1);
    }
}
