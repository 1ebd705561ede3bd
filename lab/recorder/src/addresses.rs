//! Which block lies at an address.

use rustc_hash::FxHashMap;

/// A live block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Its number; `None` if the process inherited it.
    pub number: Option<u64>,
    /// Bytes that were requested.
    pub size: u64,
}

/// The live blocks of a process by address. Every recorded call looks one up, and no attacker gains
/// by collisions, so the hash is a fast one.
pub(crate) type Addresses = FxHashMap<u64, Block>;
