//! Handles of free blocks that move between caches and slabs.

use core::ptr::NonNull;

use crate::size_class::SizeClass;

/// Free block that is in no cache and not marked free in its slab.
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
    /// The block lies in a slab of `class`, the program does not use it, and it is on no list of
    /// free blocks.
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

    /// Returns a list with only this block, stored in `slot`.
    #[inline]
    pub const fn listed(self, slot: &mut [*mut u8; 1]) -> FreeBlocks<'_> {
        slot[0] = self.as_ptr();
        FreeBlocks {
            class: self.class,
            blocks: slot,
        }
    }
}

/// List of pointers to free blocks of one class, which are on no other list. Functions that receive
/// the list may reorder it.
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
    /// The blocks lie in slabs of `class`, the program does not use them, and they are on no other
    /// list of free blocks.
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

    /// Removes the first `count` blocks from the list. The caller has stored them elsewhere.
    #[must_use]
    pub fn without_first(self, count: usize) -> Self {
        Self {
            class: self.class,
            blocks: &mut self.blocks[count..],
        }
    }
}
