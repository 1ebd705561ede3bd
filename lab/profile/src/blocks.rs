//! A live block, and a hash table for blocks and stacks.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Live {
    /// Bytes that were requested.
    pub size: u64,
    /// Requested alignment in bytes; 0 if none was requested, or an implausible one.
    pub alignment: u64,
    /// Time at which the block was made, in nanoseconds since the recording began.
    pub time: u64,
    /// Bytes that the process had requested so far, including this block.
    pub clock: u64,
    /// Number of the thread that made the block.
    pub thread: u32,
    /// Number of the stack that requested the block; `None` if no stack was recorded.
    pub stack: Option<u32>,
    /// Number of resizes in the chain that led to this block.
    pub resizes: u32,
    /// Index of the function that made the block.
    pub function: u8,
}

/// Hash table whose keys are numbers of blocks or stacks in a trace. Both are numbered
/// consecutively, so a hostile trace cannot choose numbers that collide.
pub(crate) type Numbered<K, V> = HashMap<K, V, BuildHasherDefault<Spread>>;

/// Spreads consecutive numbers over a hash table.
#[derive(Default)]
pub(crate) struct Spread(u64);

/// 2^64 divided by the golden ratio (Knuth, The Art of Computer Programming 3, 6.4).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(GOLDEN).rotate_left(32);
    }
}
