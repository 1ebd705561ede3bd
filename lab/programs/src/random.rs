//! Reproducible pseudorandom numbers.

/// Generator that returns the upper 31 bits of each state of Knuth's MMIX, a 64-bit linear
/// congruential generator. Its numbers must never change, because the inputs of programs depend on
/// them.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number below `limit`, which must not be 0.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    /// Returns one of `words`, which must not be empty.
    pub(crate) fn word<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_never_change() {
        let mut random = Random::new(42);
        let numbers: Vec<_> = (0..5).map(|_| random.below(1000)).collect();
        assert_eq!(numbers, [334, 26, 538, 503, 294]);
    }
}
