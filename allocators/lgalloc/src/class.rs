//! Size classes, which are powers of two in units of 2 MiB, and the capacities of caches and of the
//! table of dirty regions.

/// Size of the regions of the smallest class, and alignment of every region.
pub const UNIT: usize = 1 << 21;
/// Number of size classes: 2 MiB to 64 GiB, or to 512 MiB on 32-bit systems.
pub const CLASSES: usize = if usize::BITS == 64 { 16 } else { 9 };
/// Maximum number of regions of one class in the cache of one thread.
pub const PLACES: usize = 16;
/// Maximum number of threads that have a cache at the same time.
pub const SLOTS: usize = 256;
/// Maximum number of dirty regions in the shared pool. A further region displaces the oldest, which
/// is purged.
pub const ENTRIES: usize = 1024;

/// Size class: regions of `2 MiB << index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SizeClass(u8);

impl SizeClass {
    /// Class of 2 MiB.
    pub const SMALLEST: Self = Self(0);

    /// Returns the smallest class of regions that hold `bytes`; `None` if `bytes` exceeds the
    /// largest class.
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

    /// Returns the class with this index; `None` if there is no such class.
    #[must_use]
    pub const fn of_index(index: usize) -> Option<Self> {
        if index < CLASSES {
            Some(Self(index as u8))
        } else {
            None
        }
    }

    /// Returns the index of the class; the class of 2 MiB has index 0.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the size of the class's regions.
    #[inline]
    #[must_use]
    pub const fn bytes(self) -> usize {
        UNIT << self.0
    }
}
