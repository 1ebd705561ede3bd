//! Which block lies at an address.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A live block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Its number; `None` if the process inherited it.
    pub number: Option<u64>,
    /// Bytes that were requested.
    pub size: u64,
}

/// The live blocks of a process by address.
pub(crate) type Addresses = HashMap<u64, Block, BuildHasherDefault<Neighbours>>;

/// Bits of an address that are zero in every block.
const GRANULE_BITS: u32 = 4;

/// The high bits of a hash, by which the table tells entries of a group apart.
const TAG: u64 = 0x7f << 57;

/// A hash that keeps neighbours in memory neighbours in the table. Programs allocate and free runs
/// of neighbouring blocks, so one cache line serves several look-ups. No attacker gains by
/// collisions.
#[derive(Default)]
pub(crate) struct Neighbours(u64);

impl Hasher for Neighbours {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("addresses are hashed as numbers of 64 bits");
    }

    fn write_u64(&mut self, address: u64) {
        // 2^64 divided by the golden ratio (Knuth, The Art of Computer Programming 3, 6.4).
        let mixed = address.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = ((address >> GRANULE_BITS) & !TAG) | (mixed & TAG);
    }
}
