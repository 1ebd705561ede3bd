//! Amounts of memory in units. Numbers that are not of this type are bytes, counts or indices.

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
    /// As many as there can be.
    pub const MAX: Self = Self(usize::MAX);

    /// Amount of `count` units.
    #[must_use]
    pub const fn new(count: usize) -> Self {
        Self(count)
    }

    /// The number of units that `bytes` fill; a part of one does not count.
    #[must_use]
    pub const fn filled_by(bytes: usize) -> Self {
        Self(bytes >> UNIT_SHIFT)
    }

    /// The fewest units that hold `bytes`.
    #[must_use]
    pub const fn holding(bytes: usize) -> Self {
        Self(bytes.div_ceil(UNIT))
    }

    /// Units of a slab.
    #[inline]
    #[must_use]
    pub fn of_slab(class: SizeClass) -> Self {
        Self(usize::from(class.geometry().units))
    }

    /// The number.
    #[inline]
    #[must_use]
    pub const fn count(self) -> usize {
        self.0
    }

    /// Their bytes.
    #[inline]
    #[must_use]
    pub const fn bytes(self) -> usize {
        self.0 * UNIT
    }

    /// Difference; no units where `other` is more.
    #[inline]
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Difference, whichever is more.
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
