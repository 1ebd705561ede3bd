//! Counts resizes.

/// Calls that resized a block, and the chains that they form: a block, its successor after a
/// resize, and so on until one of these blocks is freed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resizes {
    /// Number of calls that resized a block.
    pub calls: u64,
    /// Number of calls that requested more bytes than before.
    pub grown: u64,
    /// Number of calls that requested fewer bytes than before.
    pub shrunk: u64,
    /// Bytes that would have been copied if every resize had moved its block.
    pub copied: u64,
    /// Number of chains with at least one resize.
    pub chains: u64,
    /// Largest number of resizes in a chain.
    pub longest: u32,
}

impl Resizes {
    /// Counts a resize from one size to another. `length` is the position of the resize in its
    /// chain, from 1.
    pub(crate) fn count(&mut self, from: u64, to: u64, length: u32) {
        self.calls += 1;
        self.grown += u64::from(to > from);
        self.shrunk += u64::from(to < from);
        self.copied = self.copied.saturating_add(from.min(to));
        self.chains += u64::from(length == 1);
        self.longest = self.longest.max(length);
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.grown += other.grown;
        self.shrunk += other.shrunk;
        self.copied = self.copied.saturating_add(other.copied);
        self.chains += other.chains;
        self.longest = self.longest.max(other.longest);
    }
}
