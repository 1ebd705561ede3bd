//! Size classes: powers of two, counted in units of 2 MiB.

/// The smallest region, and the alignment of every region.
pub const UNIT: usize = 1 << 21;
/// Number of size classes: 2 MiB to 64 GiB.
pub const CLASSES: usize = if usize::BITS == 64 { 16 } else { 9 };
/// Regions of one class in the cache of one thread.
pub const PLACES: usize = 16;
/// Caches; threads beyond this many work without one.
pub const SLOTS: usize = 256;
/// Dirty regions in the shared pool; more are purged.
pub const ENTRIES: usize = 1024;

/// A size class: regions of `2 MiB << index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SizeClass(u8);

impl SizeClass {
    /// 2 MiB.
    pub const SMALLEST: Self = Self(0);

    /// The smallest class whose regions hold `bytes`; `None` above the largest.
    #[inline]
    #[must_use]
    pub const fn of_bytes(bytes: usize) -> Option<Self> {
        if bytes > UNIT << (CLASSES - 1) {
            return None;
        }
        if bytes <= UNIT {
            return Some(Self(0));
        }
        Some(Self((usize::BITS - (bytes - 1).leading_zeros() - 21) as u8))
    }

    /// The class with this index.
    #[must_use]
    pub const fn of_index(index: usize) -> Option<Self> {
        if index < CLASSES {
            Some(Self(index as u8))
        } else {
            None
        }
    }

    /// Its place among the classes, from 0 for 2 MiB.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The size of its regions.
    #[inline]
    #[must_use]
    pub const fn bytes(self) -> usize {
        UNIT << self.0
    }
}
