//! Waits for another thread with little processor time.

use std::time::Duration;

/// State of a wait: the thread yields at first, and sleeps later.
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
