//! Handles of free blocks on their way from one place to another.

use core::ptr::NonNull;

use crate::size_class::SizeClass;

/// Block that is neither in use nor on a list of free blocks.
#[derive(Debug)]
#[must_use]
pub struct FreeBlock {
    class: SizeClass,
    block: NonNull<u8>,
}

impl FreeBlock {
    /// Declares a block free.
    ///
    /// # Safety
    ///
    /// The block comes from a slab of `class`, is not in use, and is on no list of free blocks.
    #[inline]
    pub const unsafe fn new(class: SizeClass, block: NonNull<u8>) -> Self {
        Self { class, block }
    }

    /// Returns the class of the block.
    #[inline]
    #[must_use]
    pub const fn class(&self) -> SizeClass {
        self.class
    }

    /// Returns the pointer to the block.
    #[inline]
    #[must_use]
    pub const fn as_ptr(&self) -> *mut u8 {
        self.block.as_ptr()
    }

    /// Returns a list of this block alone, in `slot`.
    #[inline]
    pub const fn listed(self, slot: &mut [*mut u8; 1]) -> FreeBlocks<'_> {
        slot[0] = self.as_ptr();
        FreeBlocks {
            class: self.class,
            blocks: slot,
        }
    }
}

/// Pointers to blocks of one class that are in no use and on no other list of free blocks. Their
/// order may change.
#[derive(Debug)]
pub struct FreeBlocks<'a> {
    class: SizeClass,
    blocks: &'a mut [*mut u8],
}

impl<'a> FreeBlocks<'a> {
    /// Declares blocks free.
    ///
    /// # Safety
    ///
    /// The blocks come from slabs of `class`, are in no use, and are on no other list of free
    /// blocks any longer.
    pub const unsafe fn new(class: SizeClass, blocks: &'a mut [*mut u8]) -> Self {
        Self { class, blocks }
    }

    /// Returns the class of the blocks.
    #[must_use]
    pub const fn class(&self) -> SizeClass {
        self.class
    }

    /// Returns the number of blocks.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.blocks.len()
    }

    /// Returns the pointers.
    pub const fn as_slice(&mut self) -> &mut [*mut u8] {
        self.blocks
    }

    /// Leaves out the first `count` blocks, which have found a place.
    #[must_use]
    pub fn without_first(self, count: usize) -> Self {
        Self {
            class: self.class,
            blocks: &mut self.blocks[count..],
        }
    }
}
