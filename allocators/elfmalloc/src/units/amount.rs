//! Type for amounts of memory in units, so that they are not confused with bytes, counts or
//! indices.

use core::ops::{Add, AddAssign, Div, Sub, SubAssign};

use crate::size_class::{SizeClass, UNIT, UNIT_SHIFT};

/// Number of units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Units(usize);

impl Units {
    /// No units.
    pub const NONE: Self = Self(0);
    /// One unit.
    pub const ONE: Self = Self(1);
    /// The largest amount.
    pub const MAX: Self = Self(usize::MAX);

    /// Creates an amount of `count` units.
    #[must_use]
    pub const fn new(count: usize) -> Self {
        Self(count)
    }

    /// Returns the number of whole units that fit into `bytes` bytes.
    #[must_use]
    pub const fn filled_by(bytes: usize) -> Self {
        Self(bytes >> UNIT_SHIFT)
    }

    /// Returns the smallest number of units that hold `bytes` bytes.
    #[must_use]
    pub const fn holding(bytes: usize) -> Self {
        Self(bytes.div_ceil(UNIT))
    }

    /// Returns the number of units of a slab.
    #[inline]
    #[must_use]
    pub fn of_slab(class: SizeClass) -> Self {
        Self(usize::from(class.geometry().units))
    }

    /// Returns the number of units.
    #[inline]
    #[must_use]
    pub const fn count(self) -> usize {
        self.0
    }

    /// Returns the number of bytes.
    #[inline]
    #[must_use]
    pub const fn bytes(self) -> usize {
        self.0 * UNIT
    }

    /// Returns the difference, or no units if `other` is larger.
    #[inline]
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Returns the absolute difference.
    #[inline]
    #[must_use]
    pub const fn abs_diff(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }
}

impl Add for Units {
    type Output = Self;

    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for Units {
    type Output = Self;

    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl AddAssign for Units {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl SubAssign for Units {
    #[inline]
    fn sub_assign(&mut self, other: Self) {
        self.0 -= other.0;
    }
}

impl Div<usize> for Units {
    type Output = Self;

    #[inline]
    fn div(self, parts: usize) -> Self {
        Self(self.0 / parts)
    }
}
