//! Histograms over the number of binary digits of a quantity.

use heapdrome_schema::SizeCount;

use crate::amount::Amount;

/// Histogram of blocks by the number of binary digits of a quantity, such as size or lifetime. Each
/// number of digits is one step, as in the size histogram of a race's evidence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Digits(Vec<Amount>);

/// Returns the number of binary digits of `value`. Zero has no digits.
pub(crate) fn digits(value: u64) -> usize {
    (u64::BITS - value.leading_zeros()) as usize
}

/// Returns the smallest power of two above all values with this number of binary digits; `u64::MAX`
/// if that power does not fit into 64 bits.
pub(crate) fn below(digits: usize) -> u64 {
    u32::try_from(digits)
        .ok()
        .and_then(|digits| 1_u64.checked_shl(digits))
        .unwrap_or(u64::MAX)
}

impl Digits {
    /// Counts a block whose quantity is `value`.
    pub(crate) fn count(&mut self, value: u64, block: Amount) {
        let place = digits(value);
        if self.0.len() <= place {
            self.0.resize(place + 1, Amount::default());
        }
        self.0[place].add(block);
    }

    pub(crate) fn add(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), Amount::default());
        }
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            own.add(*other);
        }
    }

    /// Returns the steps that contain blocks, the smallest first. Each item consists of the power
    /// of two above all quantities of the step, and the step's blocks. Unless the histogram was
    /// [`widened`](Self::widened), each quantity except 0 is at least half of that power.
    pub fn steps(&self) -> impl Iterator<Item = (u64, Amount)> + '_ {
        let places = self.0.iter().enumerate();
        places
            .filter(|(_, amount)| amount.blocks > 0)
            .map(|(place, amount)| (below(place), *amount))
    }

    /// Returns the histogram with at most `count` steps. Each new step joins neighbouring steps,
    /// and takes the power of two of the last one.
    #[must_use]
    pub fn widened(&self, count: usize) -> Self {
        let first = self.0.iter().position(|amount| amount.blocks > 0);
        let first = first.unwrap_or_default();
        let wide = (self.0.len() - first).div_ceil(count.max(1)).max(1);
        let mut widened = Self::default();
        for (place, amount) in self.0.iter().enumerate().skip(first) {
            let last = (first + (place - first) / wide * wide + wide - 1).min(self.0.len() - 1);
            widened.0.resize(last + 1, Amount::default());
            widened.0[last].add(*amount);
        }
        widened
    }

    /// Returns the steps in the form in which results store sizes.
    #[must_use]
    pub fn sizes(&self) -> Vec<SizeCount> {
        let size = |(below, amount): (u64, Amount)| SizeCount {
            below,
            blocks: amount.blocks,
            bytes: amount.bytes,
        };
        self.steps().map(size).collect()
    }

    /// Returns the sum over all steps.
    #[must_use]
    pub fn total(&self) -> Amount {
        let mut total = Amount::default();
        self.0.iter().for_each(|amount| total.add(*amount));
        total
    }

    /// Returns the smallest power of two that exceeds the quantities of at least `share` of all
    /// blocks; `None` without blocks.
    #[must_use]
    pub fn below_which(&self, share: f64) -> Option<u64> {
        let wanted = (self.total().blocks as f64 * share).ceil() as u64;
        let mut seen = 0_u64;
        let mut steps = self.steps();
        steps.find_map(|(below, amount)| {
            seen = seen.saturating_add(amount.blocks);
            (seen >= wanted).then_some(below)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_step() {
        for value in [0, 1, 2, 3, 4, 255, 256, (1 << 63) - 1, 1 << 63, u64::MAX] {
            let step = below(digits(value));
            assert!(value < step || step == u64::MAX, "{value}");
            assert!(value >= step / 2 || value == 0, "{value}");
        }
    }

    #[test]
    fn wider_steps_hold_what_the_narrow_ones_held() {
        let mut digits = Digits::default();
        assert_eq!(digits.widened(5), digits);
        for size in [3, 4, 9, 100, 200, 1000, 1000] {
            digits.count(size, Amount::one(size));
        }
        for count in 1..20 {
            let widened = digits.widened(count);
            assert!(widened.steps().count() <= count, "{count}");
            assert_eq!(widened.total(), digits.total());
            for (below, _) in widened.steps() {
                let held = |digits: &Digits| -> u64 {
                    let steps = digits.steps().filter(|(other, _)| *other <= below);
                    steps.map(|(_, amount)| amount.blocks).sum()
                };
                assert_eq!(held(&widened), held(&digits), "{count} {below}");
            }
        }
    }

    #[test]
    fn a_share_lies_below_the_first_step_that_completes_it() {
        let mut digits = Digits::default();
        assert_eq!(digits.below_which(0.5), None);
        for size in [1, 1, 100, 5000] {
            digits.count(size, Amount::one(size));
        }
        assert_eq!(digits.below_which(0.5), Some(2));
        assert_eq!(digits.below_which(0.75), Some(128));
        assert_eq!(digits.below_which(0.9), Some(8192));
        assert_eq!(
            digits.total(),
            Amount {
                blocks: 4,
                bytes: 5102
            }
        );
    }
}
