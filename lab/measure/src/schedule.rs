//! Randomised complete blocks: each round runs every entrant that still races once, in a random
//! order drawn for that round.

use rand::Rng;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::environment::PAD_LIMIT;

/// First random stream of the rounds' orders. Each round's order and each run's padding has its own
/// stream of the same seed, so no draw depends on the number of other draws.
const ORDER_STREAM: u64 = 0;
const PADDING_STREAM: u64 = 1 << 62;

/// Returns the order in which the `entrants` entrants run in `round`, as positions in the plan. It
/// is uniform over all orders, independent between rounds, and determined by the seed and the
/// round.
pub fn order(seed: u64, round: u32, entrants: usize) -> Vec<usize> {
    let mut places: Vec<usize> = (0..entrants).collect();
    places.shuffle(&mut generator(seed, ORDER_STREAM + u64::from(round)));
    places
}

/// Returns the number of bytes added to the environment of this run, uniformly distributed below
/// [`PAD_LIMIT`].
pub fn padding(seed: u64, round: u32, entrant: usize) -> u32 {
    let run = (u64::from(round) << 16) + (entrant as u64 & 0xffff);
    generator(seed, PADDING_STREAM + run).random_range(0..PAD_LIMIT)
}

fn generator(seed: u64, stream: u64) -> ChaCha8Rng {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream(stream);
    generator
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes Pearson's statistic of counts against a uniform expectation.
    fn chi_square(counts: &[u32]) -> f64 {
        let expected = f64::from(counts.iter().sum::<u32>()) / counts.len() as f64;
        counts
            .iter()
            .map(|&count| (f64::from(count) - expected).powi(2) / expected)
            .sum()
    }

    #[test]
    fn each_entrant_takes_each_place_equally_often() {
        const ENTRANTS: usize = 6;
        for entrant in 0..ENTRANTS {
            let mut counts = [0; ENTRANTS];
            for round in 0..6000 {
                let order = order(7, round, ENTRANTS);
                counts[order
                    .iter()
                    .position(|&place| place == entrant)
                    .expect("each runs")] += 1;
            }
            // The 99.99% quantile for 5 degrees of freedom is 25.7. The seed makes the draw
            // reproducible.
            assert!(chi_square(&counts) < 25.7, "{entrant}: {counts:?}");
        }
    }

    #[test]
    fn all_orders_are_equally_likely() {
        let mut counts = std::collections::BTreeMap::new();
        for round in 0..12_000 {
            *counts.entry(order(99, round, 4)).or_insert(0_u32) += 1;
        }
        assert_eq!(counts.len(), 24);
        let counts: Vec<u32> = counts.into_values().collect();
        // The 99.99% quantile for 23 degrees of freedom is 57.1.
        assert!(chi_square(&counts) < 58.0, "{counts:?}");
    }

    #[test]
    fn the_seed_and_the_round_fix_the_order() {
        assert_eq!(order(1, 5, 8), order(1, 5, 8));
        assert_ne!(order(1, 5, 8), order(1, 6, 8));
        assert_ne!(order(1, 5, 8), order(2, 5, 8));
        assert_eq!(order(1, 0, 1), [0]);
        assert!(order(1, 0, 0).is_empty());
    }

    #[test]
    fn paddings_spread_over_the_whole_range() {
        let mut counts = [0; 16];
        for round in 0..3200 {
            counts[(padding(3, round, 1) / (PAD_LIMIT / 16)) as usize] += 1;
        }
        assert!(chi_square(&counts) < 45.0, "{counts:?}");
        assert_ne!(padding(3, 0, 0), padding(3, 0, 1));
    }
}
