//! The sequential boundary: the critical value of a standardised difference at each round. If there
//! is no difference, the probability of ever crossing the boundary is at most the level, multiplied
//! by the limit of the spending function. This holds even with a look after every round and no last
//! round.
//!
//! A spending function (Lan and DeMets 1983) divides the level among the rounds, without a planned
//! last round. The recursion of Armitage, McPherson and Rowe (1969) for sums of independent normal
//! steps finds the boundary that uses up exactly each round's share.

use statrs::function::erf::erfc;

/// Nodes and weights of Gauss-Legendre quadrature on [-1, 1].
const GAUSS: [(f64, f64); 6] = [
    (-0.932_469_514_203_152, 0.171_324_492_379_170_4),
    (-0.661_209_386_466_264_5, 0.360_761_573_048_138_6),
    (-0.238_619_186_083_196_9, 0.467_913_934_572_691),
    (0.238_619_186_083_196_9, 0.467_913_934_572_691),
    (0.661_209_386_466_264_5, 0.360_761_573_048_138_6),
    (0.932_469_514_203_152, 0.171_324_492_379_170_4),
];

/// Maximum width of one panel of the quadrature, in standard deviations of a step.
const PANEL: f64 = 2.5;

/// Distance beyond which the normal density counts as zero, in standard deviations of a step.
const REACH: f64 = 8.0;

/// A quadrature node of the density of sums that have not crossed the boundary yet.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// Sum of the steps so far. The density is symmetric, so only positive sums are stored.
    sum: f64,
    /// The density at the sum, multiplied by the quadrature weight.
    mass: f64,
}

/// The boundary for one level, extended on demand.
#[derive(Debug)]
pub struct Boundary {
    first: usize,
    spent: fn(usize) -> f64,
    level: f64,
    critical: Vec<f64>,
    nodes: Vec<Node>,
}

impl Boundary {
    /// Returns a boundary whose first look is after `first` rounds. After round `n` it has spent
    /// `level` times `spent(n)`. `spent` must not decrease, and must stay between 0 and 1.
    pub fn new(level: f64, first: usize, spent: fn(usize) -> f64) -> Self {
        Self {
            first,
            spent,
            level,
            critical: Vec::new(),
            nodes: Vec::new(),
        }
    }

    /// Returns the critical value of the standardised sum after `rounds` rounds; infinite before
    /// the first look.
    pub fn critical(&mut self, rounds: usize) -> f64 {
        let Some(look) = rounds.checked_sub(self.first) else {
            return f64::INFINITY;
        };
        while self.critical.len() <= look {
            self.extend();
        }
        self.critical[look]
    }

    /// Adds the critical value of the next look.
    fn extend(&mut self) {
        let rounds = self.first + self.critical.len();
        let scale = (rounds as f64).sqrt();
        let limit = if self.critical.is_empty() {
            let share = self.level * (self.spent)(rounds);
            bisect(0.0, 40.0 * scale, |limit| {
                upper_tail(limit / scale) * 2.0 - share
            })
        } else {
            let share = self.level * ((self.spent)(rounds) - (self.spent)(rounds - 1));
            let last = self.nodes.last().map_or(0.0, |node| node.sum);
            bisect(0.0, last + 40.0, |limit| {
                crossing(&self.nodes, limit) - share
            })
        };
        let first = self.critical.is_empty();
        let density = |sum: f64| {
            if first {
                normal_density(sum / scale) / scale
            } else {
                step(&self.nodes, sum)
            }
        };
        self.nodes = grid(limit, density);
        self.critical.push(limit / scale);
    }
}

/// Returns the probability that no sum so far has crossed the boundary, and that the next one lies
/// beyond `limit` in either direction.
fn crossing(nodes: &[Node], limit: f64) -> f64 {
    // Only sums near zero can cross the boundary on the opposite side.
    let beyond = |node: &Node| {
        let far = limit + node.sum;
        let other_side = if far < REACH { upper_tail(far) } else { 0.0 };
        node.mass * (upper_tail(limit - node.sum) + other_side)
    };
    let near = nodes
        .iter()
        .rev()
        .take_while(|node| limit - node.sum < REACH);
    2.0 * near.map(beyond).sum::<f64>()
}

/// Returns the density of the next sum at `sum`, for sums that have not crossed the boundary yet.
fn step(nodes: &[Node], sum: f64) -> f64 {
    let start = nodes.partition_point(|node| node.sum < sum - REACH);
    nodes[start..]
        .iter()
        .take_while(|node| node.sum <= sum + REACH)
        .map(|node| {
            let far = sum + node.sum;
            let mirrored = if far < REACH {
                normal_density(far)
            } else {
                0.0
            };
            node.mass * (normal_density(sum - node.sum) + mirrored)
        })
        .sum()
}

/// Returns quadrature nodes for `density` from zero to `limit`.
fn grid(limit: f64, density: impl Fn(f64) -> f64) -> Vec<Node> {
    let panels = (limit / PANEL).ceil().max(1.0) as usize;
    let half = limit / panels as f64 / 2.0;
    let centres = (0..panels).map(|panel| (2 * panel + 1) as f64 * half);
    let nodes = centres
        .flat_map(|centre| GAUSS.map(|(place, weight)| (centre + half * place, half * weight)));
    nodes
        .map(|(sum, weight)| Node {
            sum,
            mass: weight * density(sum),
        })
        .collect()
}

/// Finds the zero of a decreasing function between `low` and `high`.
fn bisect(mut low: f64, mut high: f64, falling: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if falling(middle) > 0.0 {
            low = middle
        } else {
            high = middle
        }
    }
    f64::midpoint(low, high)
}

/// Returns the standard normal density at `z`.
fn normal_density(z: f64) -> f64 {
    (-z * z / 2.0).exp() * 0.398_942_280_401_432_7
}

/// Returns the probability that a standard normal variable exceeds `z`.
pub fn upper_tail(z: f64) -> f64 {
    erfc(z / std::f64::consts::SQRT_2) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the critical values of five equally spaced looks at a two-sided level of 5%.
    fn five_looks(spent: fn(usize) -> f64) -> Vec<f64> {
        let mut boundary = Boundary::new(0.05, 1, spent);
        (1..=5).map(|look| boundary.critical(look)).collect()
    }

    fn assert_close(found: &[f64], published: &[f64]) {
        for (found, published) in found.iter().zip(published) {
            assert!(
                (found - published).abs() < 1e-3,
                "{found} is not {published}"
            );
        }
    }

    #[test]
    fn spending_after_obrien_and_fleming_gives_the_published_boundaries() {
        let spent = |look: usize| {
            4.0 * upper_tail(2.241_402_727_604_947 / (look as f64 / 5.0).sqrt()) / 0.05
        };
        assert_close(
            &five_looks(spent),
            &[4.8769, 3.3569, 2.6803, 2.2898, 2.0310],
        );
    }

    #[test]
    fn spending_after_pocock_gives_the_published_boundaries() {
        let spent = |look: usize| (1.0 + (std::f64::consts::E - 1.0) * look as f64 / 5.0).ln();
        assert_close(
            &five_looks(spent),
            &[2.4380, 2.4268, 2.4101, 2.3966, 2.3859],
        );
    }

    #[test]
    fn all_spent_at_one_look_is_the_usual_test() {
        let mut boundary = Boundary::new(0.05, 3, |_| 1.0);
        assert!(boundary.critical(2).is_infinite());
        assert!((boundary.critical(3) - 1.959_964).abs() < 1e-5);
    }

    #[test]
    fn what_is_left_is_what_was_not_spent() {
        let spent = |rounds: usize| rounds as f64 / (rounds as f64 + 20.0);
        let mut boundary = Boundary::new(0.00625, 5, spent);
        assert!(boundary.critical(200) > 3.0);
        let left: f64 = 2.0 * boundary.nodes.iter().map(|node| node.mass).sum::<f64>();
        let error = 1.0 - left - 0.00625 * spent(200);
        assert!(error.abs() < 1e-8, "{error:e}");
    }
}
