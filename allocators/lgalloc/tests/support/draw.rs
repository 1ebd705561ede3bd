//! Small generator of pseudo-random numbers (xorshift), so that a failure can be reproduced from
//! its seed.

/// State of the generator, which must not be zero.
pub struct Draw(pub u64);

impl Draw {
    /// Returns a number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}
