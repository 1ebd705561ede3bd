//! Free blocks on their way.

use crate::size_class::SizeClass;

/// Pointers to blocks of one class that nobody uses, and that no other list of free blocks has. The order may change.
#[derive(Debug)]
pub struct FreeBlocks<'a> {
    class: SizeClass,
    blocks: &'a mut [*mut u8],
}

impl<'a> FreeBlocks<'a> {
    /// Says that blocks are free.
    ///
    /// # Safety
    ///
    /// The blocks come from slabs of `class`, nobody uses them, and where they were listed before they are no longer.
    pub const unsafe fn new(class: SizeClass, blocks: &'a mut [*mut u8]) -> Self {
        Self { class, blocks }
    }

    /// Class of the blocks.
    #[must_use]
    pub const fn class(&self) -> SizeClass {
        self.class
    }

    /// Number of blocks.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.blocks.len()
    }

    /// The first of them.
    ///
    /// # Panics
    ///
    /// Where there is none.
    #[inline]
    #[must_use]
    pub const fn first(&self) -> *mut u8 {
        self.blocks[0]
    }

    /// The pointers.
    pub const fn as_slice(&mut self) -> &mut [*mut u8] {
        self.blocks
    }

    /// Leaves out the first blocks, which have found a place.
    #[must_use]
    pub fn without_first(self, count: usize) -> Self {
        Self {
            class: self.class,
            blocks: &mut self.blocks[count..],
        }
    }
}
