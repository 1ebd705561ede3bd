//! Size classes: one for every 16 bytes up to 256 bytes, then eight for each doubling up to 128
//! KiB.
//!
//! Every class size is a multiple of 16, and every power of two from 16 to the largest class is a
//! class size. Slabs begin at multiples of 64 KiB. The blocks of a class are therefore aligned to
//! the largest power of two that divides its size, up to 64 KiB.

/// Bytes in a unit. Slabs consist of units, and the class map has an entry for each unit.
pub const UNIT: usize = 1 << UNIT_SHIFT;
/// Binary logarithm of [`UNIT`].
pub const UNIT_SHIFT: u32 = 16;
/// Size of the largest block in a slab.
pub const LARGEST: usize = 128 << 10;
/// Number of classes whose blocks lie in slabs. Class numbers start at 1.
pub const CLASSES: usize = number_above_256(LARGEST) as usize;
/// Size of the largest block whose class comes from [`SMALL_TABLE`].
pub const SMALL: usize = 1024;
/// Number of the first class whose bin all threads share. Its blocks, and those of all later
/// classes, are larger than 4 KiB.
pub const FIRST_SHARED: usize = number_above_256(4 << 10) as usize + 1;

/// Number of a size class, at most that of [`SizeClass::LARGE`].
///
/// [`SizeClass::LARGE`] marks the first unit of a run that is one block, [`SizeClass::NONE`] every
/// other address outside slabs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct SizeClass(u8);

impl SizeClass {
    /// Class of addresses outside slabs, except those in the first unit of a run that is one block.
    pub const NONE: Self = Self(0);
    /// Class of the first unit of a run that is one block.
    pub const LARGE: Self = Self(CLASSES as u8 + 1);

    /// Returns the class with this number.
    ///
    /// # Panics
    ///
    /// If the number is above that of [`LARGE`](Self::LARGE).
    #[inline]
    #[must_use]
    pub const fn from_number(number: u8) -> Self {
        assert!(number <= Self::LARGE.0);
        Self(number)
    }

    /// Returns the class with this number.
    ///
    /// # Safety
    ///
    /// The number is at most that of [`LARGE`](Self::LARGE).
    #[inline(always)]
    pub(crate) const unsafe fn from_number_unchecked(number: u8) -> Self {
        debug_assert!(number <= Self::LARGE.0);
        Self(number)
    }

    /// Returns the number of the class.
    #[inline]
    #[must_use]
    pub const fn number(self) -> usize {
        self.0 as usize
    }

    /// Returns whether the blocks of this class lie in slabs.
    #[inline]
    #[must_use]
    pub const fn is_slab(self) -> bool {
        self.0 != 0 && self.0 <= CLASSES as u8
    }

    /// Returns the class for `size`. Size 0 counts as size 1.
    ///
    /// # Panics
    ///
    /// If the size is above [`LARGEST`].
    #[inline]
    #[must_use]
    pub const fn of(size: usize) -> Self {
        assert!(size <= LARGEST);
        if size <= SMALL {
            SMALL_TABLE[(size + 15) >> 4]
        } else {
            Self(number_above_256(size))
        }
    }

    /// Returns the smallest class for `size` whose blocks are all aligned to `alignment`, a power
    /// of two; `None` if no slab has such blocks.
    #[must_use]
    pub const fn of_aligned(size: usize, alignment: usize) -> Option<Self> {
        if size > LARGEST || alignment > UNIT {
            return None;
        }
        let least = if size < alignment { alignment } else { size };
        let mut class = Self::of(least);
        while class.is_slab() {
            if class.geometry().size as usize & (alignment - 1) == 0 {
                return Some(class);
            }
            class = Self(class.0 + 1);
        }
        None
    }

    /// Returns the shape of the slabs of this class, which is not [`LARGE`](Self::LARGE).
    #[inline]
    #[must_use]
    pub const fn geometry(self) -> &'static Geometry {
        &GEOMETRY[self.0 as usize]
    }

    /// Returns the size of a block.
    #[inline]
    #[must_use]
    pub const fn size(self) -> usize {
        self.geometry().size as usize
    }
}

/// Properties of a class, computed from its size.
#[derive(Clone, Copy, Debug)]
pub struct Geometry {
    /// Number of bytes in a block.
    pub size: u32,
    /// 2^32 / size, rounded up. Multiplication by it replaces a division by the size.
    pub reciprocal: u32,
    /// Number of blocks in a slab.
    pub blocks: u16,
    /// Number of units in a slab.
    pub units: u16,
}

impl Geometry {
    const fn of(size: usize) -> Self {
        let units = units_of_slab(size);
        Self {
            size: size as u32,
            reciprocal: (1_u64 << 32).div_ceil(size as u64) as u32,
            blocks: ((units * UNIT) / size) as u16,
            units: units as u16,
        }
    }

    /// Returns the number of words of the bitmap of a slab.
    #[inline]
    #[must_use]
    pub const fn words(&self) -> usize {
        (self.blocks as usize).div_ceil(64)
    }

    /// Returns the index of the block that begins `offset` bytes into the slab. If no block begins
    /// there, the result is the index of some other block, or out of range.
    #[inline]
    #[must_use]
    pub const fn index(&self, offset: usize) -> usize {
        // Exact for multiples of the size. The offset is below 2^20 and the reciprocal is rounded
        // up by less than 1. So before truncation, the result is too large by less than 2^-12.
        ((offset as u64 * self.reciprocal as u64) >> 32) as usize
    }

    /// Returns the index of the block that begins `offset` bytes into the slab; `None` if no block
    /// begins there.
    #[inline(always)]
    #[must_use]
    pub const fn block_at(&self, offset: usize) -> Option<usize> {
        let index = self.index(offset);
        if index * self.size as usize == offset && index < self.blocks as usize {
            Some(index)
        } else {
            None
        }
    }
}

/// Returns the number of units of a slab: the fewest that hold the minimum number of blocks and
/// waste at most a sixteenth at the end. Smaller slabs become empty sooner, and their memory is
/// then available to other classes.
const fn units_of_slab(size: usize) -> usize {
    let least = match size {
        0..=4096 => 32,
        4097..=16_384 => 8,
        16_385..=UNIT => 4,
        _ => 2,
    };
    let mut units = 1;
    loop {
        let bytes = units * UNIT;
        let blocks = bytes / size;
        if blocks >= least && (bytes - blocks * size) * 16 <= bytes {
            return units;
        }
        units += 1;
    }
}

/// Returns the number of the class for a size above 256.
const fn number_above_256(size: usize) -> u8 {
    let last = size - 1;
    let doubling = last.ilog2();
    let eighth = (last >> (doubling - 3)) & 7;
    ((doubling as usize - 8) * 8 + eighth + 17) as u8
}

const fn size_of_number(number: usize) -> usize {
    if number <= 16 {
        return number * 16;
    }
    let doubling = (number - 17) / 8 + 8;
    let eighth = (number - 17) % 8;
    (1 << doubling) + ((eighth + 1) << (doubling - 3))
}

static GEOMETRY: [Geometry; CLASSES + 1] = {
    let mut table = [Geometry {
        size: 0,
        reciprocal: 0,
        blocks: 0,
        units: 0,
    }; CLASSES + 1];
    let mut number = 1;
    while number <= CLASSES {
        table[number] = Geometry::of(size_of_number(number));
        number += 1;
    }
    table
};

/// Class of each 16-byte step up to [`SMALL`].
static SMALL_TABLE: [SizeClass; SMALL / 16 + 1] = SMALL_CLASSES;

/// Contents of [`SMALL_TABLE`], for structures that keep a copy.
pub const SMALL_CLASSES: [SizeClass; SMALL / 16 + 1] = {
    let mut table = [SizeClass(1); SMALL / 16 + 1];
    let mut step = 1;
    while step <= SMALL / 16 {
        table[step] = if step <= 16 {
            SizeClass(step as u8)
        } else {
            SizeClass(number_above_256(step * 16))
        };
        step += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_the_smallest_class_that_holds_it() {
        for size in (1..=LARGEST).step_by(if cfg!(miri) { 31 } else { 1 }) {
            let class = SizeClass::of(size);
            assert!(class.size() >= size, "{size}");
            if class.number() > 1 {
                let below = SizeClass::from_number(class.number() as u8 - 1);
                assert!(below.size() < size, "{size}");
            }
        }
        assert_eq!(SizeClass::of(0), SizeClass::of(1));
        assert_eq!(SizeClass::of(LARGEST).number(), CLASSES);
        assert!(SizeClass::from_number(FIRST_SHARED as u8 - 1).size() == 4096);
    }

    #[test]
    fn waste_is_at_most_an_eighth_above_256_bytes() {
        for size in (257..=LARGEST).step_by(if cfg!(miri) { 63 } else { 1 }) {
            let class = SizeClass::of(size).size();
            assert!((class - size) * 8 <= size, "{size} in {class}");
        }
    }

    #[test]
    fn the_reciprocal_divides_every_offset_at_which_a_block_begins() {
        for number in 1..=CLASSES {
            let shape = SizeClass::from_number(number as u8).geometry();
            let indices = 0..usize::from(shape.blocks);
            for index in indices.step_by(if cfg!(miri) { 13 } else { 1 }) {
                assert_eq!(shape.index(index * shape.size as usize), index);
            }
            assert!(usize::from(shape.blocks) * shape.size as usize <= shape.units as usize * UNIT);
        }
    }

    #[test]
    fn no_offset_inside_a_block_passes_for_a_block() {
        for number in (1..=CLASSES).step_by(7) {
            let shape = SizeClass::from_number(number as u8).geometry();
            let size = shape.size as usize;
            let offsets = 0..shape.units as usize * UNIT;
            for offset in offsets.step_by(if cfg!(miri) { 251 } else { 1 }) {
                let passes = shape.index(offset) * size == offset;
                assert_eq!(passes, offset % size == 0, "{offset} in {size}");
            }
        }
    }

    #[test]
    fn aligned_classes_divide_by_the_alignment() {
        for shift in 0..=16 {
            let alignment = 1 << shift;
            for size in [0, 1, 17, 100, 1000, 5000, 40000, 100_000] {
                let class = SizeClass::of_aligned(size, alignment).expect("a class exists");
                assert!(class.size() >= size && class.size().is_multiple_of(alignment));
            }
        }
        assert_eq!(SizeClass::of_aligned(LARGEST + 1, 16), None);
        assert_eq!(SizeClass::of_aligned(1, 2 * UNIT), None);
    }

    #[test]
    #[should_panic(expected = "number <= ")]
    fn no_class_has_a_number_above_that_of_large() {
        let _ = SizeClass::from_number(CLASSES as u8 + 2);
    }

    #[test]
    #[should_panic(expected = "size <= LARGEST")]
    fn no_class_is_for_larger_sizes() {
        let _ = SizeClass::of(LARGEST + 1);
    }

    #[test]
    fn slabs_waste_little_at_their_end() {
        for number in 1..=CLASSES {
            let shape = SizeClass::from_number(number as u8).geometry();
            let whole = shape.units as usize * UNIT;
            let wasted = whole - usize::from(shape.blocks) * shape.size as usize;
            // The waste costs only address space, because it is never touched.
            assert!(
                wasted < shape.size as usize && wasted * 16 <= whole,
                "{}",
                shape.size
            );
        }
    }
}
