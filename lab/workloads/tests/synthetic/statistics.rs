//! Chi-square test of whether values are uniformly distributed.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

/// Returns the chi-square statistic of values against equal probabilities from `least` to
/// `greatest`, with `bins` bins of equal width. Also returns the value that the statistic exceeds
/// with probability 1/10,000.
pub(crate) fn chi_square(values: &[u64], least: u64, greatest: u64, bins: u64) -> (f64, f64) {
    let width = (greatest - least + 1) / bins;
    assert_eq!(width * bins, greatest - least + 1, "bins of equal width");
    let mut counts = vec![0_u64; bins as usize];
    for value in values {
        assert!((least..=greatest).contains(value), "{value}");
        counts[((value - least) / width) as usize] += 1;
    }
    let expected = values.len() as f64 / bins as f64;
    let of_bin = |count: &u64| (*count as f64 - expected).powi(2) / expected;
    let freedom = (bins - 1) as f64;
    // Wilson and Hilferty's approximation; 3.719 is the normal quantile of 0.9999.
    let spread = 2.0 / (9.0 * freedom);
    let limit = freedom * (1.0 - spread + 3.719 * spread.sqrt()).powi(3);
    (counts.iter().map(of_bin).sum(), limit)
}

#[test]
fn uneven_chances_are_found() {
    let mut random = SplitMix64::seed_from_u64(1);
    let mut draw = || random.next_u64();
    let even: Vec<_> = (0..20_000).map(|_| 1 + draw() % 64).collect();
    let (found, limit) = chi_square(&even, 1, 64, 64);
    assert!(found < limit, "{found} {limit}");
    let skewed: Vec<_> = even
        .iter()
        .map(|value| {
            if draw() % 20 == 0 {
                1 + value / 2
            } else {
                *value
            }
        })
        .collect();
    let (found, limit) = chi_square(&skewed, 1, 64, 64);
    assert!(found > limit, "{found} {limit}");
}
