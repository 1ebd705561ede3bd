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
pub(crate) type Addresses = HashMap<u64, Block, BuildHasherDefault<AddressHasher>>;

/// Hashes addresses. They are no input of an attacker who could gain anything by collisions, and
/// every recorded call looks one up.
#[derive(Default)]
pub(crate) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("addresses are numbers of 64 bits");
    }

    fn write_u64(&mut self, address: u64) {
        // Multiplicative hashing (Knuth, The Art of Computer Programming 3, 6.4) by 2^64 divided by
        // the golden ratio. The table takes its place from the low bits and its tag from the high.
        let product = (address >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ product >> 32;
    }
}
