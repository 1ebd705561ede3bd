//! Estimates from a trace of which only a sample of the blocks, or of the stacks, was recorded.
//!
//! A block of `size` bytes is recorded with the probability `p = 1 - exp(-max(size, 1) / mean)`, as
//! `docs/trace-format.md` defines it. The estimate of a sum over all blocks is the sum over the
//! recorded ones, each divided by its `p` (Horvitz and Thompson, "A Generalization of Sampling
//! Without Replacement From a Finite Universe", Journal of the American Statistical Association 47,
//! 1952). Blocks are recorded independently of each other, so the sum of `value^2 (1 - p) / p^2`
//! over the recorded blocks estimates the variance without bias.

use heapdrome_trace::Recording;
use rand::{Rng, SeedableRng};
use rand_xoshiro::SplitMix64;

use crate::amount::Amount;

/// Half the width of a 95% interval, in standard errors.
const INTERVAL: f64 = 1.96;

/// Parameters of the sample of blocks, or of stacks, that was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sampling {
    /// Mean number of requested bytes between two sample points; 0 if everything was recorded.
    mean: u64,
}

impl Sampling {
    /// Returns the parameters of the sample of blocks that a recording took.
    #[must_use]
    pub fn of_blocks(recording: &Recording) -> Self {
        Self {
            mean: recording.sample_bytes,
        }
    }

    /// Returns the parameters of the sample of blocks with a stack; `None` if no stacks were
    /// recorded.
    #[must_use]
    pub fn of_stacks(recording: &Recording) -> Option<Self> {
        let blocks = recording.sample_bytes;
        match recording.stack_bytes {
            0 => None,
            1 => Some(Self { mean: blocks }),
            stacks => Some(Self {
                mean: stacks.max(blocks),
            }),
        }
    }

    /// Returns whether everything was recorded.
    #[must_use]
    pub fn is_whole(self) -> bool {
        self.mean == 0
    }

    /// Returns the mean number of requested bytes between two sample points; 0 if everything was
    /// recorded.
    #[must_use]
    pub fn mean(self) -> u64 {
        self.mean
    }

    /// Returns the probability with which a block of this size is recorded.
    #[must_use]
    pub fn probability(self, size: u64) -> f64 {
        if self.is_whole() {
            return 1.0;
        }
        -(-(size.max(1) as f64) / self.mean as f64).exp_m1()
    }

    /// Returns the blocks and bytes that a recorded block represents, with their variance.
    ///
    /// A hash of the block's number decides whether the number of blocks is rounded up or down. The
    /// rounded number is right on average, and always the same for one block, so a free subtracts
    /// the amount that the request added.
    pub(crate) fn weigh(self, size: u64, block: u64) -> Weighed {
        if self.is_whole() {
            return Weighed {
                amount: Amount::one(size),
                variance: Variance::default(),
            };
        }
        let probability = self.probability(size);
        let stands_for = 1.0 / probability;
        let part = stands_for.fract();
        let blocks = stands_for.floor() as u64 + u64::from(draw(block) < part);
        let unseen = (1.0 - probability) * stands_for * stands_for;
        let bytes = size as f64;
        Weighed {
            amount: Amount {
                blocks,
                bytes: (bytes * stands_for).round() as u64,
            },
            variance: Variance {
                blocks: unseen + part * (1.0 - part),
                bytes: bytes * bytes * unseen,
            },
        }
    }
}

/// Returns a number in [0, 1) that depends only on the block's number.
fn draw(block: u64) -> f64 {
    SplitMix64::seed_from_u64(block).random()
}

/// Amount that one recorded block represents, with its variance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weighed {
    pub amount: Amount,
    pub variance: Variance,
}

/// Variance of an estimated [`Amount`]; zero if the amount is exact.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Variance {
    /// Variance of the number of blocks.
    pub blocks: f64,
    /// Variance of the bytes.
    pub bytes: f64,
}

impl Variance {
    /// Returns half the width of the 95% interval of the amount, by the normal approximation.
    #[must_use]
    pub fn half_width(self) -> Amount {
        let half = |variance: f64| (INTERVAL * variance.max(0.0).sqrt()).round() as u64;
        Amount {
            blocks: half(self.blocks),
            bytes: half(self.bytes),
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.blocks += other.blocks;
        self.bytes += other.bytes;
    }

    pub(crate) fn subtract(&mut self, other: Self) {
        self.blocks -= other.blocks;
        self.bytes -= other.bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampling(mean: u64) -> Sampling {
        Sampling { mean }
    }

    #[test]
    fn a_whole_trace_is_counted_as_it_is() {
        let weighed = sampling(0).weigh(100, 7);
        assert_eq!(weighed.amount, Amount::one(100));
        assert_eq!(weighed.variance.half_width(), Amount::default());
    }

    #[test]
    fn a_block_stands_for_one_over_its_probability() {
        // 1 / (1 - exp(-1)) = 1.5820, and 1024 times that is 1619.94.
        assert!((sampling(1024).probability(1024) - 0.632_12).abs() < 1e-5);
        let blocks: u64 = (0..10_000)
            .map(|block| sampling(1024).weigh(1024, block).amount.blocks)
            .sum();
        assert!((15_720..15_920).contains(&blocks), "{blocks}");
        assert_eq!(sampling(1024).weigh(1024, 3).amount.bytes, 1620);
        assert_eq!(sampling(1000).weigh(0, 3).amount.bytes, 0);
        assert!(sampling(1000).weigh(0, 3).amount.blocks >= 1000);
    }

    #[test]
    fn stacks_have_the_larger_of_the_two_means() {
        let recording = |sample_bytes, stack_bytes| Recording {
            sample_bytes,
            stack_bytes,
            ..Recording::default()
        };
        let mean = |blocks, stacks| {
            let sampling = Sampling::of_stacks(&recording(blocks, stacks));
            sampling.map(Sampling::mean)
        };
        assert_eq!(mean(512, 0), None);
        assert_eq!(mean(0, 1), Some(0));
        assert_eq!(mean(512, 1), Some(512));
        assert_eq!(mean(0, 512), Some(512));
        assert_eq!(mean(4096, 512), Some(4096));
    }
}
