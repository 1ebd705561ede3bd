//! Ratios of wall time, processor time and peak memory for the tests of the conclusion.

use crate::seven::{EVEN, Ratio};

/// Ratios of a rival that shows no difference in any figure.
pub const ALL_EVEN: [Ratio; 3] = [EVEN; 3];
/// Ratios of a rival that is faster and uses more memory.
pub const FAST: [Ratio; 3] = [(0.71, 0.02), (0.72, 0.02), (1.14, 0.01)];
/// Ratios of a rival whose times are so noisy that the race could show only large differences.
pub const UNSEEN: [Ratio; 3] = [(1.0, 0.5), (1.0, 0.4), (1.0, 0.02)];
