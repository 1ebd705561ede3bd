//! Place for one block.

use crate::array::Zeroed;

/// Block in use, or no block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    /// The block; null if the slot is empty.
    pub(crate) block: *mut u8,
    /// Requested size of the block.
    pub(crate) size: u32,
    /// Key from which the block's contents are derived.
    pub(crate) key: u32,
}

impl Slot {
    /// Empty slot.
    pub(crate) const EMPTY: Self = Self {
        block: std::ptr::null_mut(),
        size: 0,
        key: 0,
    };
}

// SAFETY: zero bytes are a null pointer and two zeros, which is an empty slot.
unsafe impl Zeroed for Slot {}
