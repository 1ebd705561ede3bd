//! Free blocks on their way.

use core::ptr::NonNull;

use crate::size_class::SizeClass;

/// A block that is neither in use nor on a list of free blocks.
#[derive(Debug)]
#[must_use]
pub struct FreeBlock {
    class: SizeClass,
    block: NonNull<u8>,
}

impl FreeBlock {
    /// Says that a block is free.
    ///
    /// # Safety
    ///
    /// The block comes from a slab of `class`, is not in use, and is on no list of free blocks.
    #[inline]
    pub const unsafe fn new(class: SizeClass, block: NonNull<u8>) -> Self {
        Self { class, block }
    }

    /// Class of the block.
    #[inline]
    #[must_use]
    pub const fn class(&self) -> SizeClass {
        self.class
    }

    /// Pointer to the block.
    #[inline]
    #[must_use]
    pub const fn as_ptr(&self) -> *mut u8 {
        self.block.as_ptr()
    }

    /// A list of this block alone, in `slot`.
    #[inline]
    pub const fn listed(self, slot: &mut [*mut u8; 1]) -> FreeBlocks<'_> {
        slot[0] = self.as_ptr();
        FreeBlocks {
            class: self.class,
            blocks: slot,
        }
    }
}

/// Pointers to blocks of one class that nobody uses, and that no other list of free blocks has. The
/// order may change.
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
    /// The blocks come from slabs of `class`, nobody uses them, and where they were listed before
    /// they are no longer.
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
