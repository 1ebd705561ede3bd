//! Sizes drawn from a distribution.

use crate::Parameters;

/// Number of cells of equal probability into which a distribution is divided.
const CELLS: usize = 1 << CELL_BITS;
const CELL_BITS: u32 = 9;
/// Number of fractional bits of a boundary between cells.
const FRACTION: u32 = 16;
/// Number of times that the density of the exponential falloff halves between the minimum and the
/// maximum size.
const HALVINGS: f64 = 10.0;

/// Shape of a distribution of sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One size, halfway between minimum and maximum, rounded down.
    Fixed,
    /// Every size is equally probable.
    Even,
    /// The density falls linearly to zero at the maximum size.
    Linear,
    /// The density halves with every tenth of the range.
    Exponential,
    /// The density is inversely proportional to the size, so that equal factors of size are equally
    /// probable, as in Zipf's law.
    Logarithmic,
}

impl Shape {
    /// Returns the shape that rptest's parameters `mode` and `distribution` name.
    pub fn of(mode: u64, distribution: u64) -> Self {
        match (mode, distribution) {
            (1, _) => Self::Fixed,
            (_, 0) => Self::Even,
            (_, 1) => Self::Linear,
            _ => Self::Exponential,
        }
    }

    /// Returns the quantile of `share`, as a position from 0 to 1 within the range of sizes.
    /// `factor` is the ratio of the range's end to its start.
    fn quantile(self, share: f64, factor: f64) -> f64 {
        match self {
            Self::Fixed => 0.5,
            Self::Even => share,
            Self::Linear => 1.0 - (1.0 - share).sqrt(),
            Self::Exponential => {
                let whole = 1.0 - (-HALVINGS).exp2();
                -(1.0 - share * whole).log2() / HALVINGS
            }
            Self::Logarithmic => (factor.powf(share) - 1.0) / (factor - 1.0),
        }
    }
}

/// Distribution of sizes, stored as the boundaries of cells of equal probability.
///
/// A draw picks a cell and a place in it, so that every shape costs the same: two loads from 4 KiB
/// and a multiplication. The density within a cell is uniform, so the distribution only
/// approximates the shape.
#[derive(Debug)]
pub struct Sizes {
    boundaries: [u64; CELLS + 1],
}

impl Sizes {
    /// Creates the distribution of this shape with the parameters `min` and `max` as its range.
    pub fn of(shape: Shape, parameters: &Parameters) -> Self {
        Self::new(shape, parameters.value("min"), parameters.value("max"))
    }

    /// Creates the logarithmic distribution with the parameters `min` and `max` as its range.
    pub fn logarithmic(parameters: &Parameters) -> Self {
        Self::of(Shape::Logarithmic, parameters)
    }

    /// Creates the distribution of sizes from `least` to `greatest`, inclusive.
    pub fn new(shape: Shape, least: u64, greatest: u64) -> Self {
        let (from, to) = match shape {
            Shape::Fixed => {
                let middle = least + (greatest - least) / 2;
                (middle, middle)
            }
            _ => (least, greatest),
        };
        let range = (to - from + 1) as f64;
        let factor = (to + 1) as f64 / from.max(1) as f64;
        let unit = f64::from(1_u32 << FRACTION);
        let boundary = |cell: usize| match cell {
            0 => from << FRACTION,
            CELLS => (to + 1) << FRACTION,
            _ => {
                let place = shape.quantile(cell as f64 / CELLS as f64, factor) * range;
                (from << FRACTION) + (place * unit) as u64
            }
        };
        Self {
            boundaries: std::array::from_fn(boundary),
        }
    }

    /// Returns the size for 64 random bits.
    #[inline]
    pub fn draw(&self, random: u64) -> u32 {
        let cell = (random >> (u64::BITS - CELL_BITS)) as usize;
        let within = u128::from(random << CELL_BITS);
        let (low, high) = (self.boundaries[cell], self.boundaries[cell + 1]);
        let place = low + ((u128::from(high - low) * within) >> u64::BITS) as u64;
        (place >> FRACTION) as u32
    }

    /// Returns the mean size in bytes.
    pub fn mean(&self) -> f64 {
        let sum: u64 = self.boundaries.windows(2).map(|two| two[0] + two[1]).sum();
        sum as f64 / (2 * CELLS) as f64 / f64::from(1_u32 << FRACTION) - 0.5
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact_mean(probability: impl Fn(u64) -> f64, least: u64, greatest: u64) -> f64 {
        let weights = || (least..=greatest).map(|size| (size as f64, probability(size)));
        let whole: f64 = weights().map(|(_, weight)| weight).sum();
        weights().map(|(size, weight)| size * weight).sum::<f64>() / whole
    }

    #[test]
    fn the_ends_are_reached_and_not_passed() {
        let shapes = [Shape::Even, Shape::Linear, Shape::Exponential];
        for shape in shapes.into_iter().chain([Shape::Logarithmic]) {
            for (least, greatest) in [(1, 1), (16, 17), (16, 1000), (512, 160_000), (1, 1 << 30)] {
                let sizes = Sizes::new(shape, least, greatest);
                assert_eq!(u64::from(sizes.draw(0)), least, "{shape:?}");
                assert_eq!(u64::from(sizes.draw(u64::MAX)), greatest, "{shape:?}");
            }
        }
        let fixed = Sizes::new(Shape::Fixed, 16, 1000);
        assert_eq!((fixed.draw(0), fixed.draw(u64::MAX)), (508, 508));
    }

    #[test]
    fn the_mean_is_that_of_the_stated_density() {
        let (least, greatest) = (128_u64, 64_000_u64);
        let range = (greatest - least + 1) as f64;
        let place = |size: u64| ((size - least) as f64 + 0.5) / range;
        let close = |shape: Shape, exact: f64| {
            let mean = Sizes::new(shape, least, greatest).mean();
            assert!(
                (mean / exact - 1.0).abs() < 0.002,
                "{shape:?}: {mean}, not {exact}"
            );
        };
        close(Shape::Even, exact_mean(|_| 1.0, least, greatest));
        close(
            Shape::Linear,
            exact_mean(|size| 1.0 - place(size), least, greatest),
        );
        let halving = |size: u64| (-10.0 * place(size)).exp2();
        close(Shape::Exponential, exact_mean(halving, least, greatest));
        let inverse = |size: u64| 1.0 / size as f64;
        close(Shape::Logarithmic, exact_mean(inverse, least, greatest));
        close(Shape::Fixed, (128.0 + 64_000.0) / 2.0);
    }
}
