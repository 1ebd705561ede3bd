//! A free region in one word: its address, a multiple of 2 MiB, and in the bits below when it was
//! freed. The class is known from where the word lies.

use crate::class::UNIT;

/// Milliseconds in one step of the time that a word carries; it wraps after about nine hours, which
/// makes an old region look young once, at worst.
const STEP_SHIFT: u32 = 4;

/// A free region whose contents may still be in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region(pub usize);

impl Region {
    /// The region at `start`, freed at `now`.
    #[inline]
    pub const fn new(start: usize, now: u64) -> Self {
        Self(start | ((now >> STEP_SHIFT) as usize & (UNIT - 1)))
    }

    /// Where it begins.
    #[inline]
    pub const fn start(self) -> usize {
        self.0 & !(UNIT - 1)
    }

    /// Milliseconds since it was freed, in steps of 16.
    #[inline]
    pub const fn age(self, now: u64) -> u64 {
        let steps = ((now >> STEP_SHIFT) as usize).wrapping_sub(self.0) & (UNIT - 1);
        (steps as u64) << STEP_SHIFT
    }
}
