//! What the checks of the hardened variant need to know of a class, in one place.

use crate::size_class::{CLASSES, SizeClass, UNIT};

/// The largest blocks that are short. All others are long.
pub(crate) const SHORT: usize = 1024;
/// Blocks are filled and looked at in pieces of this size.
pub(crate) const PIECE: usize = size_of::<u128>();
/// Bytes of a line of the cache.
const LINE: usize = 64;

/// A class's size, and where the pieces lie that are filled: at all sums of some of three steps.
/// Where a block is smaller than what is filled they overlap, so that nothing branches on the size.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
pub(crate) struct Shape {
    size: u32,
    reciprocal: u32,
    by_one: u8,
    by_two: u8,
    by_four: u8,
    /// The bits of a block's address by which the last step is shorter.
    skew: u8,
}

impl Shape {
    /// For a class, whose size is a multiple of [`PIECE`].
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

    /// Twice the step must fit, or the step ends with the block.
    const fn step(size: usize, bytes: usize) -> u8 {
        let rest = size.saturating_sub(bytes);
        if rest < bytes {
            rest as u8
        } else {
            bytes as u8
        }
    }

    /// That of a class.
    #[inline(always)]
    pub(crate) fn of(class: SizeClass) -> &'static Self {
        &SHAPES[class.number()]
    }

    /// The size of a block.
    #[inline(always)]
    pub(crate) const fn size(&self) -> usize {
        self.size as usize
    }

    /// Which of a unit's short blocks begins at `address`; any number where none does.
    #[inline(always)]
    pub(crate) const fn index(&self, address: usize) -> usize {
        (((address % UNIT) as u64 * self.reciprocal as u64) >> 32) as usize
    }

    /// Where the pieces begin that are looked at, as distances from a block's start.
    #[inline(always)]
    pub(crate) fn looked_at(&self) -> [usize; 4] {
        let [one, two] = [self.by_one, self.by_two].map(usize::from);
        [0, one, two, one + two]
    }

    /// How far behind those the others begin that are filled, for a block at `address`. They end
    /// with the second line of the cache, where the block reaches that far: a third one would be
    /// brought near for them alone.
    #[inline(always)]
    pub(crate) fn rest_from(&self, address: usize) -> usize {
        usize::from(self.by_four) - (address & usize::from(self.skew))
    }
}

/// By class. There is an entry for every number that there can be, so that no index is out of
/// bounds.
static SHAPES: [Shape; 256] = {
    let mut shapes = [Shape::new(SizeClass::NONE); 256];
    let mut class = 1;
    while class <= CLASSES {
        shapes[class] = Shape::new(SizeClass::from_number(class as u8));
        class += 1;
    }
    shapes
};

/// Whether a class is one of long blocks.
#[inline(always)]
pub(crate) const fn is_long(class: SizeClass) -> bool {
    class.number() > SizeClass::of(SHORT).number()
}

// A short block's index can be told from its address.
const _: () = {
    let mut class = 1;
    while class <= SizeClass::of(SHORT).number() {
        assert!(SizeClass::from_number(class as u8).geometry().units == 1);
        class += 1;
    }
};
