//! The effect of each function of the allocation ABI on blocks.

use crate::slots::Slot;

/// Argument with the size of the requested block, or the two arguments whose product is the size.
#[derive(Clone, Copy)]
pub enum Size {
    First,
    Second,
    Third,
    FirstTimesSecond,
    SecondTimesThird,
}

/// Effect of a function on blocks.
#[derive(Clone, Copy)]
pub enum Deed {
    /// Returns a new block.
    Makes(Size),
    /// Stores the address of a new block at the address in the first argument and returns 0, or
    /// fails and returns an error number.
    Stores(Size),
    /// Frees the block in the first argument.
    Frees,
    /// Frees the block in the first argument and returns a new block, or fails and does neither.
    /// For size 0, may free the block and return null.
    Resizes(Size),
    Nothing,
}

/// Returns the effect of the function at an index of [`FUNCTIONS`](crate::layout::FUNCTIONS).
pub const fn deed(index: usize) -> Deed {
    match index {
        0 | 9 | 10 | 14..=21 => Deed::Makes(Size::First),
        1 => Deed::Makes(Size::FirstTimesSecond),
        2 => Deed::Resizes(Size::Second),
        3 => Deed::Resizes(Size::SecondTimesThird),
        6 | 8 => Deed::Makes(Size::Second),
        7 => Deed::Stores(Size::Third),
        11 => Deed::Nothing,
        _ => Deed::Frees,
    }
}

/// A call on its way to the allocator, as the passages lay it out on the stack. No function has
/// more than three arguments.
#[repr(C)]
pub struct Call {
    /// First three argument registers. A function may use fewer.
    pub arguments: [usize; 3],
    /// The slot of the function. If [`crate::recording_passages`] times the call, this is the
    /// slot's address plus [`TIMED`](crate::slots::TIMED), or plus twice that for a large block.
    pub slot: *const Slot,
}

/// Returns the number of bytes that a call requests.
pub fn asked(size: Size, arguments: &[usize; 3]) -> u64 {
    let [a, b, c] = *arguments;
    let bytes = match size {
        Size::First => a,
        Size::Second => b,
        Size::Third => c,
        Size::FirstTimesSecond => a.saturating_mul(b),
        Size::SecondTimesThird => b.saturating_mul(c),
    };
    bytes as u64
}
