//! Free region in one word: its address, a multiple of 2 MiB, and in the bits below the time when
//! it was freed. The class follows from the place of the word.

use crate::class::UNIT;

/// Logarithm of the milliseconds in one step of the time that a word holds. The time wraps after
/// about nine hours, so an old region may look young once.
const STEP_SHIFT: u32 = 4;

/// Free region whose contents may still be in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region(pub usize);

impl Region {
    /// Creates the word of the region at `start`, freed at `now`.
    #[inline]
    pub const fn new(start: usize, now: u64) -> Self {
        Self(start | ((now >> STEP_SHIFT) as usize & (UNIT - 1)))
    }

    /// Returns the start of the region.
    #[inline]
    pub const fn start(self) -> usize {
        self.0 & !(UNIT - 1)
    }

    /// Returns the milliseconds since it was freed, in steps of 16.
    #[inline]
    pub const fn age(self, now: u64) -> u64 {
        let steps = ((now >> STEP_SHIFT) as usize).wrapping_sub(self.0) & (UNIT - 1);
        (steps as u64) << STEP_SHIFT
    }
}
