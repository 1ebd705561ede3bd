//! A map from small numbers, which needs no protection from hostile keys.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map from numbers.
pub(super) type Table<K, V> = HashMap<K, V, BuildHasherDefault<Spread>>;

/// Spreads numbers by a multiplication.
#[derive(Default)]
pub(super) struct Spread(u64);

/// 2^64 divided by the golden ratio.
const RATIO: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64((*byte).into());
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        let product = (self.0 ^ number).wrapping_mul(RATIO);
        // The map uses the low bits, which a product mixes least.
        self.0 = product ^ product >> 32;
    }
}
