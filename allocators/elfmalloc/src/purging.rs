//! What is out of the pool while the system takes its memory, without a lock. In the child of a fork nobody brings
//! it back: it is known here.

use core::ptr::NonNull;

/// So many threads may purge at once.
const MOST: usize = 16;

/// Some units: their memory, and how many they are.
pub(crate) type Units = (NonNull<u8>, usize);

/// The units that threads are purging; the pool's lock guards it.
#[derive(Debug)]
pub(crate) struct Purging([Option<Units>; MOST]);

impl Purging {
    /// None.
    pub(crate) const NONE: Self = Self([None; MOST]);

    /// Where the units are to be noted that another thread purges; `None` where there are too many.
    pub(crate) fn place(&mut self) -> Option<&mut Option<Units>> {
        self.0.iter_mut().find(|units| units.is_none())
    }

    /// Forgets the units that begin at `base`.
    pub(crate) fn forget(&mut self, base: NonNull<u8>) {
        for units in &mut self.0 {
            units.take_if(|units| units.0 == base);
        }
    }

    /// Some of the units.
    pub(crate) fn any(&self) -> Option<Units> {
        self.0.iter().find_map(|units| *units)
    }

    /// How many there are.
    pub(crate) fn units(&self) -> usize {
        self.0.iter().flatten().map(|units| units.1).sum()
    }
}
