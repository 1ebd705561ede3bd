//! Units as types, so that bytes cannot be added to seconds.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, Mul, Sub};

use serde::{Deserialize, Serialize};

/// An amount of memory in bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// A duration in nanoseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Nanoseconds(pub u64);

impl Bytes {
    /// Returns `kib` kibibytes, the unit in which the kernel reports memory.
    pub const fn from_kib(kib: u64) -> Self {
        Self(kib.saturating_mul(1024))
    }

    /// Returns `mib` mebibytes.
    pub const fn from_mib(mib: u64) -> Self {
        Self(mib.saturating_mul(1 << 20))
    }

    /// Returns `gib` gibibytes.
    pub const fn from_gib(gib: u64) -> Self {
        Self(gib.saturating_mul(1 << 30))
    }

    /// Returns the amount, rounded up to a multiple of `step`.
    ///
    /// # Panics
    /// When `step` is zero.
    pub fn rounded_up_to(self, step: Self) -> Self {
        Self(self.0.next_multiple_of(step.0))
    }

    /// Returns the amount as a floating-point number of bytes, for statistics.
    pub fn as_f64(self) -> f64 {
        self.0 as f64
    }
}

impl Nanoseconds {
    /// Returns the duration in seconds.
    pub fn as_seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns a duration of `seconds`, rounded to a nanosecond. A negative value or NaN becomes
    /// zero.
    pub fn from_seconds(seconds: f64) -> Self {
        Self((seconds * 1e9).round() as u64)
    }
}

impl From<std::time::Duration> for Nanoseconds {
    fn from(span: std::time::Duration) -> Self {
        Self(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanoseconds> for std::time::Duration {
    fn from(span: Nanoseconds) -> Self {
        Self::from_nanos(span.0)
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Bytes {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Mul<u64> for Bytes {
    type Output = Self;
    fn mul(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self(0), Add::add)
    }
}

impl Add for Nanoseconds {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Nanoseconds {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Bytes {
    /// Units larger than the byte, with their sizes in bytes, the largest first.
    pub const UNITS: [(f64, &str); 3] = [
        ((1_u64 << 30) as f64, "GiB"),
        ((1_u64 << 20) as f64, "MiB"),
        ((1_u64 << 10) as f64, "KiB"),
    ];
}

impl Nanoseconds {
    /// Units larger than the nanosecond, with their sizes in nanoseconds, the largest first.
    pub const UNITS: [(f64, &str); 3] = [(1e9, "s"), (1e6, "ms"), (1e3, "µs")];
}

impl fmt::Display for Bytes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        scaled(out, self.0, "B", Self::UNITS)
    }
}

impl fmt::Display for Nanoseconds {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        scaled(out, self.0, "ns", Self::UNITS)
    }
}

/// Formats a whole number with commas between thousands, such as `1,240,332`.
#[must_use]
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Writes an amount in the largest unit in which it is at least 1. An amount in the smallest unit
/// is a whole number; any other has at least three significant digits.
fn scaled(
    out: &mut fmt::Formatter<'_>,
    amount: u64,
    smallest: &str,
    steps: [(f64, &str); 3],
) -> fmt::Result {
    let fits = |(step, _): &(f64, &str)| amount as f64 >= *step;
    match steps.into_iter().find(fits) {
        Some((step, unit)) => write!(out, "{} {unit}", three_digits(amount as f64 / step)),
        None => write!(out, "{amount} {smallest}"),
    }
}

/// Formats `value` with at least three significant digits and no exponent.
fn three_digits(value: f64) -> String {
    let decimals = match value {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_printed_with_three_digits() {
        assert_eq!(Bytes(512).to_string(), "512 B");
        assert_eq!(Bytes(1536).to_string(), "1.50 KiB");
        assert_eq!(Bytes(250 << 20).to_string(), "250 MiB");
        assert_eq!(Bytes(5 << 29).to_string(), "2.50 GiB");
    }

    #[test]
    fn spans_are_printed_with_three_digits() {
        assert_eq!(Nanoseconds(42).to_string(), "42 ns");
        assert_eq!(Nanoseconds(1_234).to_string(), "1.23 µs");
        assert_eq!(Nanoseconds(1_234_567).to_string(), "1.23 ms");
        assert_eq!(Nanoseconds(75_320_000_000).to_string(), "75.3 s");
        assert_eq!(Nanoseconds(230_172_000_000).to_string(), "230 s");
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(grouped(1_240_332), "1,240,332");
        assert_eq!(grouped(999), "999");
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Nanoseconds(1) - Nanoseconds(2), Nanoseconds(0));
        assert_eq!(Bytes(u64::MAX) + Bytes(1), Bytes(u64::MAX));
        assert_eq!(Bytes(u64::MAX) * 2, Bytes(u64::MAX));
        assert_eq!(Bytes(1) - Bytes(2), Bytes(0));
        assert_eq!(Nanoseconds::from_seconds(-1.0), Nanoseconds(0));
    }
}
