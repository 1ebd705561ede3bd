//! Blocks of a slab that are neighbours: handed out and taken back at one stroke.

use crate::size_class::Geometry;

/// 64 neighbouring blocks, the highest first.
///
/// # Safety
///
/// `slots` has room for 64, and the blocks lie in one slab.
#[inline]
pub(crate) unsafe fn fill(slots: *mut *mut u8, base: *mut u8, size: usize) {
    for slot in 0..64 {
        // SAFETY: the caller's promise.
        unsafe { *slots.add(slot) = base.add((63 - slot) * size) };
    }
}

/// Blocks that follow one another in memory as they do in a list.
pub(crate) struct Run {
    /// The lowest index of one.
    pub(crate) first: usize,
    /// How many.
    pub(crate) length: usize,
}

/// How many pointers at the start of `blocks` are neighbours, the first of which has `index`: one,
/// or a multiple of eight. Bursts are freed in the order in which they were allocated, or in reverse.
#[inline]
pub(crate) fn run_of(blocks: &[*mut u8], shape: &Geometry, index: usize) -> Run {
    let one = Run {
        first: index,
        length: 1,
    };
    let (eights, _) = blocks.as_chunks::<8>();
    let Some(first) = eights.first() else {
        return one;
    };
    let size = shape.size as usize;
    let step = first[1].addr().wrapping_sub(first[0].addr());
    let ascending = step == size;
    if !ascending && step != size.wrapping_neg() {
        return one;
    }
    let room = if ascending {
        usize::from(shape.blocks) - index
    } else {
        index + 1
    };
    let mut expected = first[0].addr();
    let mut length = 0;
    for eight in &eights[..(room / 8).min(eights.len())] {
        if !are_neighbours(eight, expected, step) {
            break;
        }
        expected = expected.wrapping_add(step.wrapping_mul(8));
        length += 8;
    }
    if length == 0 {
        return one;
    }
    let first = if ascending { index } else { index + 1 - length };
    Run { first, length }
}

/// Whether eight pointers follow one another by `step` from `first` on.
#[inline]
fn are_neighbours(blocks: &[*mut u8; 8], first: usize, step: usize) -> bool {
    let mut difference = 0;
    for (slot, block) in blocks.iter().enumerate() {
        difference |= block.addr() ^ first.wrapping_add(step.wrapping_mul(slot));
    }
    difference == 0
}

/// Sets `count` bits from `first` on; false where one was set, and then nothing may rely on them.
///
/// # Safety
///
/// The bits lie in the bitmap, and nobody else uses it.
#[inline]
pub(crate) unsafe fn set_range(bits: *mut u64, first: usize, count: usize) -> bool {
    let mut index = first;
    let mut left = count;
    let mut overlap = 0;
    while left != 0 {
        let shift = index % 64;
        let here = left.min(64 - shift);
        let mask = (!0_u64 >> (64 - here)) << shift;
        // SAFETY: the caller's promise.
        unsafe {
            let word = bits.add(index / 64);
            overlap |= *word & mask;
            *word |= mask;
        }
        index += here;
        left -= here;
    }
    overlap == 0
}
