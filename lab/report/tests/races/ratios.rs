//! Ratios on wall time, processor time and peak memory that tests of the conclusion have in common.

use crate::seven::{EVEN, Ratio};

/// Every figure is even.
pub const ALL_EVEN: [Ratio; 3] = [EVEN; 3];
/// Faster for more memory.
pub const FAST: [Ratio; 3] = [(0.71, 0.02), (0.72, 0.02), (1.14, 0.01)];
/// Times so noisy that little could have been shown.
pub const UNSEEN: [Ratio; 3] = [(1.0, 0.5), (1.0, 0.4), (1.0, 0.02)];
