//! A hash map whose keys are numbers, without protection against hostile keys.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

pub(super) type Table<K, V> = HashMap<K, V, BuildHasherDefault<Spread>>;

/// Numbering of names from 0, in the order of their first appearance. A name is any number, such as
/// the number of a thread in a trace.
#[derive(Default)]
pub(super) struct Numbers {
    numbers: Table<u32, u32>,
    /// Name and number of the latest look-up. The next look-up usually has the same name.
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

/// Hasher that spreads numbers by a multiplication.
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
        // The map chooses buckets by the low bits, which a product mixes least.
        self.0 = product ^ product >> 32;
    }
}
