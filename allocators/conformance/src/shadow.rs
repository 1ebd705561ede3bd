//! Shadow heap: a record of live blocks, independent of the allocator under test.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Size of the windows into which the address space is divided. Each window uses one of [`LOCKS`]
/// locks, so that threads seldom wait for one another.
const WINDOW: usize = 4 << 20;
const LOCKS: usize = 64;

/// Ranges that live blocks occupy.
pub(crate) struct Shadow {
    /// Maps from starts to ends of ranges. A range is split at the boundaries of windows.
    windows: Vec<Mutex<BTreeMap<usize, usize>>>,
}

impl Shadow {
    pub(crate) fn new() -> Self {
        Self {
            windows: (0..LOCKS).map(|_| Mutex::default()).collect(),
        }
    }

    fn window(&self, address: usize) -> MutexGuard<'_, BTreeMap<usize, usize>> {
        self.windows[address / WINDOW % LOCKS]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a new block. An empty block counts as one byte, because its address must be unique.
    ///
    /// # Errors
    ///
    /// The range of a live block that the new block overlaps.
    pub(crate) fn enter(&self, start: usize, size: usize) -> Result<(), (usize, usize)> {
        for (from, to) in parts(start, size) {
            let mut window = self.window(from);
            if let Some((&other, &end)) = window.range(..to).next_back()
                && end > from
            {
                return Err((other, end));
            }
            window.insert(from, to);
        }
        Ok(())
    }

    /// Removes a block. Must be called before the allocator can reuse the block's addresses.
    pub(crate) fn leave(&self, start: usize, size: usize) {
        for (from, _) in parts(start, size) {
            self.window(from).remove(&from);
        }
    }
}

/// Splits a range at the boundaries of windows.
fn parts(start: usize, size: usize) -> impl Iterator<Item = (usize, usize)> {
    let end = start + size.max(1);
    let first = start / WINDOW;
    let last = (end - 1) / WINDOW;
    (first..=last).map(move |window| (start.max(window * WINDOW), end.min((window + 1) * WINDOW)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_no_overlap_and_everything_else_is() {
        let shadow = Shadow::new();
        assert_eq!(shadow.enter(WINDOW - 16, 64), Ok(()));
        assert_eq!(shadow.enter(WINDOW - 32, 16), Ok(()));
        assert_eq!(shadow.enter(WINDOW + 48, 0), Ok(()));
        assert!(shadow.enter(WINDOW + 47, 1).is_err());
        assert!(shadow.enter(WINDOW - 17, 1).is_err());
        assert!(shadow.enter(WINDOW - 100, 1000).is_err());
        shadow.leave(WINDOW - 16, 64);
        assert_eq!(shadow.enter(WINDOW + 40, 8), Ok(()));
    }
}
