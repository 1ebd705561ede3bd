//! Draws distances between the points of a Poisson process.
//!
//! The logarithm is defined here, because this library is not linked with a mathematical library.
//! The witness also compiles this file, in order to test it.

/// Returns the next 64 bits of a random sequence, and advances its state: SplitMix64 (Steele, Lea,
/// Flood: Fast splittable pseudorandom number generators, 2014).
pub fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Returns the number of whole bytes before the next point, from 64 random bits.
///
/// The distance is exponentially distributed with the mean `mean`. A point falls into a request of
/// `size` bytes if the returned number is less than `size`. The probability of that is
/// `1 - exp(-size / mean)`.
pub fn distance(bits: u64, mean: f64) -> u64 {
    // A multiple of 2^-53 in (0, 1].
    let uniform = ((bits >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    (-logarithm(uniform) * mean) as u64
}

/// Returns the natural logarithm of a positive normal number, with an absolute error below 1e-13.
fn logarithm(number: f64) -> f64 {
    const MANTISSA_BITS: u32 = f64::MANTISSA_DIGITS - 1;
    const BIAS: i64 = 1023;
    let bits = number.to_bits();
    let mut exponent = (bits >> MANTISSA_BITS) as i64 - BIAS;
    let mantissa = bits & ((1 << MANTISSA_BITS) - 1);
    let mut fraction = f64::from_bits((BIAS as u64) << MANTISSA_BITS | mantissa);
    if fraction > core::f64::consts::SQRT_2 {
        fraction /= 2.0;
        exponent += 1;
    }
    // ln f = 2 artanh((f - 1) / (f + 1)). Near f = 1, nine terms of the series suffice.
    let ratio = (fraction - 1.0) / (fraction + 1.0);
    let square = ratio * ratio;
    let sum = (0..9_u32).rev().fold(0.0, |sum, term| {
        sum * square + 1.0 / f64::from(2 * term + 1)
    });
    exponent as f64 * core::f64::consts::LN_2 + 2.0 * ratio * sum
}
