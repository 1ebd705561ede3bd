//! Free region in one word: its address, a multiple of 2 MiB, and in the lower bits the time when
//! it was freed. The place where the word is stored determines the class.

use crate::class::UNIT;

/// Binary logarithm of the milliseconds in one step of the stored time. The time wraps after about
/// nine hours, so an old region may then look young.
const STEP_SHIFT: u32 = 4;

/// Free region whose contents may still be in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region(pub usize);

impl Region {
    /// Creates the word of a region at `start` that was freed at `now`.
    #[inline]
    pub const fn new(start: usize, now: u64) -> Self {
        Self(start | ((now >> STEP_SHIFT) as usize & (UNIT - 1)))
    }

    #[inline]
    pub const fn start(self) -> usize {
        self.0 & !(UNIT - 1)
    }

    /// Returns the milliseconds since the region was freed, rounded to steps.
    #[inline]
    pub const fn age(self, now: u64) -> u64 {
        let steps = ((now >> STEP_SHIFT) as usize).wrapping_sub(self.0) & (UNIT - 1);
        (steps as u64) << STEP_SHIFT
    }
}
