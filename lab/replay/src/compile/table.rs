//! A map from small numbers, which needs no protection from hostile keys.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map from numbers.
pub(super) type Table<K, V> = HashMap<K, V, BuildHasherDefault<Spread>>;

/// Numbers things from 0, in the order in which their names first appear.
#[derive(Default)]
pub(super) struct Numbers {
    numbers: Table<u32, u32>,
    /// The name that was asked for last, and its number: mostly that of the next one, too.
    latest: Option<(u32, u32)>,
}

impl Numbers {
    /// Returns the number of a name; `None` if it has none yet.
    #[inline]
    pub(super) fn get(&mut self, name: u32) -> Option<u32> {
        match self.latest {
            Some((latest, number)) if latest == name => Some(number),
            _ => {
                let number = *self.numbers.get(&name)?;
                self.latest = Some((name, number));
                Some(number)
            }
        }
    }

    /// Gives the next number to a name that has none.
    pub(super) fn add(&mut self, name: u32) {
        self.numbers.insert(name, self.numbers.len() as u32);
    }
}

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
