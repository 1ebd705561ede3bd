//! Tests of the distances between sample points.

use crate::exponential::{distance, random};

const SEED: u64 = 20_261_125;

#[test]
fn the_logarithm_is_that_of_the_standard_library() {
    let mut state = SEED;
    let mean = (1_u64 << 40) as f64;
    let extremes = [0, 1 << 11, u64::MAX, u64::MAX >> 1, u64::MAX >> 40];
    let drawn = (0..100_000).map(|_| random(&mut state));
    for bits in extremes.into_iter().chain(drawn.collect::<Vec<_>>()) {
        let uniform = ((bits >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        let expected = -uniform.ln() * mean;
        let error = (distance(bits, mean) as f64 - expected).abs();
        // Rounding down loses up to one byte; the remaining error is that of the logarithm.
        assert!(error < 1.0 + 1e-13 * mean, "{bits}: {error}");
    }
}

#[test]
fn points_fall_into_a_request_as_often_as_the_format_says() {
    const DRAWS: u32 = 200_000;
    let mut state = SEED;
    let mean = 1000.0;
    for size in [1, 10, 100, 1000, 5000] {
        let fallen = (0..DRAWS).filter(|_| distance(random(&mut state), mean) < size);
        let fallen = fallen.count() as f64;
        let share = 1.0 - (-(size as f64) / mean).exp();
        let expected = share * f64::from(DRAWS);
        let deviation = (expected * (1.0 - share)).sqrt();
        let error = (fallen - expected) / deviation;
        assert!(error.abs() < 5.0, "{size}: {error} standard deviations");
    }
}
