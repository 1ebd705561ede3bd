//! Seeded random numbers: xoshiro256++ of Blackman and Vigna, from the crate `rand_xoshiro`.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

/// One thread's stream. Streams of one seed are 2^128 draws apart, so they never overlap.
#[derive(Clone, Debug)]
pub(crate) struct Random(Xoshiro256PlusPlus);

impl Random {
    /// Creates the stream of a thread. Allocates nothing.
    pub(crate) fn new(seed: u64, thread: usize) -> Self {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
        for _ in 0..thread {
            generator.jump();
        }
        Self(generator)
    }

    /// Draws 64 random bits.
    #[inline]
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Draws a number below `end`, which must not be 0. The relative error of each number's
    /// probability is at most `end` / 2^64.
    #[inline]
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(end)) >> 64) as u64
    }

    /// Draws a number from `least` to `greatest`, inclusive.
    #[inline]
    pub(crate) fn between(&mut self, least: u64, greatest: u64) -> u64 {
        least + self.below(greatest - least + 1)
    }
}

/// Spreads the bits of a number with the finaliser of `SplitMix64` (Steele, Lea and Flood, 2014).
#[inline]
pub(crate) fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_and_differ() {
        let draw = |seed, thread| {
            let mut random = Random::new(seed, thread);
            (0..8).map(|_| random.bits()).collect::<Vec<_>>()
        };
        assert_eq!(draw(1, 3), draw(1, 3));
        assert_ne!(draw(1, 3), draw(1, 2));
        assert_ne!(draw(1, 3), draw(2, 3));
    }

    #[test]
    fn draws_stay_in_their_range_and_reach_its_ends() {
        let mut random = Random::new(1, 0);
        let mut seen = [false; 5];
        for _ in 0..1000 {
            seen[random.between(3, 7) as usize - 3] = true;
        }
        assert_eq!(seen, [true; 5]);
    }
}
