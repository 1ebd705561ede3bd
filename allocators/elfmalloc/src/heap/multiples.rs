//! Places within a unit at which blocks of a class can begin.

use crate::size_class::{CLASSES, SizeClass, UNIT};

/// Test that an offset is a multiple of a size.
///
/// The multiplier is 2^32 / size, rounded up. An offset below 2^16 is a multiple of the size if and
/// only if the lower half of its product with the multiplier is below the multiplier. (D. Lemire,
/// O. Kaser, N. Kurz, "Faster remainder by direct computation", Software: Practice and Experience
/// 49, 2019.)
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Multiples {
    multiplier: u32,
    /// The multiplier minus one. Zero, as is the multiplier, if every address passes.
    limit: u32,
}

impl Multiples {
    /// Test that every address passes.
    const ALL: Self = Self {
        multiplier: 0,
        limit: 0,
    };

    /// Creates the test of a class. If blocks reach from one unit of a slab into the next, the
    /// offset in a unit does not show where blocks begin, so all addresses pass.
    const fn of(class: SizeClass) -> Self {
        let shape = class.geometry();
        if shape.units > 1 && !UNIT.is_multiple_of(shape.size as usize) {
            return Self::ALL;
        }
        Self {
            multiplier: shape.reciprocal,
            limit: shape.reciprocal - 1,
        }
    }

    /// Returns false only if no block can begin at `address`. May also return true for addresses at
    /// which none begins, for example behind the last block of a slab.
    #[inline(always)]
    pub(crate) const fn may_begin_at(&self, address: usize) -> bool {
        let offset = (address % UNIT) as u32;
        offset.wrapping_mul(self.multiplier) <= self.limit
    }
}

/// Returns the tests by class number. For numbers that denote no class of slabs, every address
/// passes the test.
pub(crate) const fn by_number<const ENTRIES: usize>() -> [Multiples; ENTRIES] {
    let mut all = [Multiples::ALL; ENTRIES];
    let mut class = 1;
    while class <= CLASSES {
        all[class] = Multiples::of(SizeClass::from_number(class as u8));
        class += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const MULTIPLES: [Multiples; CLASSES + 2] = by_number();

    #[test]
    fn exactly_the_addresses_at_which_a_block_can_begin_pass() {
        let mut tested = 0;
        for (class, multiples) in MULTIPLES.iter().enumerate().take(CLASSES + 1).skip(1) {
            let shape = SizeClass::from_number(class as u8).geometry();
            let (size, whole) = (shape.size as usize, shape.units as usize * UNIT);
            let base = 7 * UNIT;
            let exact = multiples.multiplier != 0;
            tested += usize::from(exact);
            for offset in (0..whole).step_by(if cfg!(miri) { 251 } else { 1 }) {
                let begins = offset.is_multiple_of(size);
                let passes = multiples.may_begin_at(base + offset);
                assert!(passes == begins || passes && !exact, "{offset} in {size}");
            }
        }
        assert!(tested > CLASSES / 2, "{tested} classes are tested");
    }

    #[test]
    fn every_address_passes_where_no_slab_is() {
        for class in [SizeClass::NONE, SizeClass::LARGE] {
            let multiples = MULTIPLES[class.number()];
            assert!(
                [0, 1, 4096, UNIT - 1].map(|address| multiples.may_begin_at(address)) == [true; 4]
            );
        }
    }
}
