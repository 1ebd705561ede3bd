//! A place for one block.

use crate::array::Zeroed;

/// A block that is in use, or none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    /// The block; null where there is none.
    pub(crate) block: *mut u8,
    /// Its size as requested.
    pub(crate) size: u32,
    /// What its contents are made of.
    pub(crate) key: u32,
}

impl Slot {
    /// None.
    pub(crate) const EMPTY: Self = Self {
        block: std::ptr::null_mut(),
        size: 0,
        key: 0,
    };
}

// SAFETY: zero bytes are a null pointer and two zeros, a slot without a block.
unsafe impl Zeroed for Slot {}
