//! Properties of a class that the checks of the hardened variant need.

use crate::size_class::{CLASSES, SizeClass, UNIT};

/// Size of the largest short block. All larger blocks are long.
pub(crate) const SHORT: usize = 1024;
/// Size of a piece. Blocks are filled and checked piece by piece.
pub(crate) const PIECE: usize = size_of::<u128>();
/// Bytes of a cache line.
const LINE: usize = 64;

/// Size of a class, and the positions of the eight pieces to fill: each begins at the sum of a
/// subset of three steps. In a block that is too small for eight pieces, the pieces overlap, so
/// that no code branches on the size.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
pub(crate) struct Shape {
    size: u32,
    reciprocal: u32,
    by_one: u8,
    by_two: u8,
    by_four: u8,
    /// Mask of address bits: the last step is shortened by these bits of the block's address.
    skew: u8,
}

impl Shape {
    /// Creates the shape of a class, whose size is a multiple of [`PIECE`].
    const fn new(class: SizeClass) -> Self {
        let geometry = class.geometry();
        let size = geometry.size as usize;
        let by_four = Self::step(size, 4 * PIECE);
        let whole = by_four as usize == LINE;
        Self {
            size: geometry.size,
            reciprocal: geometry.reciprocal,
            by_one: Self::step(size, PIECE),
            by_two: Self::step(size, 2 * PIECE),
            by_four,
            skew: if whole { (LINE - PIECE) as u8 } else { 0 },
        }
    }

    /// Returns a step of `bytes`. If `bytes` bytes at that step would exceed the block, shortens
    /// the step so that they end with the block.
    const fn step(size: usize, bytes: usize) -> u8 {
        let rest = size.saturating_sub(bytes);
        if rest < bytes {
            rest as u8
        } else {
            bytes as u8
        }
    }

    #[inline(always)]
    pub(crate) fn of(class: SizeClass) -> &'static Self {
        &SHAPES[class.number()]
    }

    /// Returns the size of a block.
    #[inline(always)]
    pub(crate) const fn size(&self) -> usize {
        self.size as usize
    }

    /// Returns the index of the short block that begins at `address` within its unit; an arbitrary
    /// number if no block begins there.
    #[inline(always)]
    pub(crate) const fn index(&self, address: usize) -> usize {
        (((address % UNIT) as u64 * self.reciprocal as u64) >> 32) as usize
    }

    /// Returns the distances from a block's start at which the checked pieces begin.
    #[inline(always)]
    pub(crate) fn looked_at(&self) -> [usize; 4] {
        let [one, two] = [self.by_one, self.by_two].map(usize::from);
        [0, one, two, one + two]
    }

    /// Returns the distance from each checked piece to the corresponding unchecked piece, for a
    /// block at `address`. In blocks of at least two cache lines, the filled part ends with the
    /// second line, so that no third line is fetched.
    #[inline(always)]
    pub(crate) fn rest_from(&self, address: usize) -> usize {
        usize::from(self.by_four) - (address & usize::from(self.skew))
    }
}

/// Shapes by class number. Has an entry for every `u8`, so that indexing needs no bounds check.
static SHAPES: [Shape; 256] = {
    let mut shapes = [Shape::new(SizeClass::NONE); 256];
    let mut class = 1;
    while class <= CLASSES {
        shapes[class] = Shape::new(SizeClass::from_number(class as u8));
        class += 1;
    }
    shapes
};

/// Returns whether the blocks of a class are long.
#[inline(always)]
pub(crate) const fn is_long(class: SizeClass) -> bool {
    class.number() > SizeClass::of(SHORT).number()
}

// Slabs of short blocks have one unit, so the address of a block alone gives its index.
const _: () = {
    let mut class = 1;
    while class <= SizeClass::of(SHORT).number() {
        assert!(SizeClass::from_number(class as u8).geometry().units == 1);
        class += 1;
    }
};
