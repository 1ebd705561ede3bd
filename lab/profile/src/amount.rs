//! Counts blocks and their bytes.

/// A number of blocks and the bytes that were requested for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Number of blocks.
    pub blocks: u64,
    /// Requested bytes of these blocks.
    pub bytes: u64,
}

impl Amount {
    /// Returns the amount of one block of this size.
    pub(crate) fn one(bytes: u64) -> Self {
        Self { blocks: 1, bytes }
    }

    /// Returns the amount if `counts` is true, and zero otherwise.
    pub(crate) fn filter(self, counts: bool) -> Self {
        if counts { self } else { Self::default() }
    }

    /// Adds another amount. Saturates at the largest 64-bit number.
    pub(crate) fn add(&mut self, other: Self) {
        self.blocks = self.blocks.saturating_add(other.blocks);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }

    /// Returns the sum modulo 2^64.
    pub(crate) fn wrapping_add(self, other: Self) -> Self {
        Self {
            blocks: self.blocks.wrapping_add(other.blocks),
            bytes: self.bytes.wrapping_add(other.bytes),
        }
    }

    /// Returns the difference modulo 2^64.
    pub(crate) fn wrapping_sub(self, other: Self) -> Self {
        Self {
            blocks: self.blocks.wrapping_sub(other.blocks),
            bytes: self.bytes.wrapping_sub(other.bytes),
        }
    }

    /// Subtracts another amount. Saturates at zero.
    pub(crate) fn subtract(&mut self, other: Self) {
        self.blocks = self.blocks.saturating_sub(other.blocks);
        self.bytes = self.bytes.saturating_sub(other.bytes);
    }
}
