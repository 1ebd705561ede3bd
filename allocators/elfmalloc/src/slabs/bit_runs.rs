//! Blocks of a slab that are neighbours: handed out and taken back at one stroke.

use crate::size_class::Geometry;

/// `count` neighbouring blocks from `lowest` on, the highest first.
///
/// # Safety
///
/// `slots` has room for as many, and the blocks lie in one slab.
#[inline]
pub(crate) unsafe fn fill(slots: *mut *mut u8, lowest: *mut u8, size: usize, count: usize) {
    let mut block = lowest;
    for slot in (0..count).rev() {
        // SAFETY: the caller's promise; behind the highest block the address is not used.
        unsafe { *slots.add(slot) = block };
        block = block.wrapping_add(size);
    }
}

/// The set bits of a word, if there are some and they are neighbours. In a slab whose blocks are freed in no order they
/// hardly ever are, which costs that slab four instructions for a word.
#[inline]
pub(crate) fn only_run(word: u64) -> Option<Run> {
    let first = word.trailing_zeros();
    let above = word.wrapping_add(word & word.wrapping_neg());
    (word != 0 && word & above == 0).then(|| Run {
        first: first as usize,
        length: (64 - word.leading_zeros() - first) as usize,
    })
}

/// A word of which `count` bits from `first` on are set, at least one.
#[inline]
pub(crate) const fn bits_of(first: usize, count: usize) -> u64 {
    (!0 >> (64 - count)) << first
}

/// Blocks that follow one another in memory as they do in a list.
pub(crate) struct Run {
    /// The lowest index of one.
    pub(crate) first: usize,
    /// How many.
    pub(crate) length: usize,
}

/// The pointers at the start of `blocks` that are neighbours, the first of which has `index`: one at least. Bursts are
/// freed in the order in which they were allocated, or in reverse.
#[inline]
pub(crate) fn run_of(blocks: &[*mut u8], shape: &Geometry, index: usize) -> Run {
    let size = shape.size as usize;
    let first = blocks[0].addr();
    let step = blocks
        .get(1)
        .map_or(0, |next| next.addr().wrapping_sub(first));
    let (step, room) = if step == size {
        (size, usize::from(shape.blocks) - index)
    } else if step == size.wrapping_neg() {
        (step, index + 1)
    } else {
        (0, 1)
    };
    let room = room.min(blocks.len());
    let mut expected = first.wrapping_add(step);
    let mut length = 1;
    while length < room && blocks[length].addr() == expected {
        expected = expected.wrapping_add(step);
        length += 1;
    }
    let first = if step == size {
        index
    } else {
        index + 1 - length
    };
    Run { first, length }
}

/// Sets `count` bits from `first` on.
///
/// # Errors
///
/// The lowest that was set before. Those below it are set then, and maybe others.
///
/// # Safety
///
/// The bits lie in the bitmap, and nobody else uses it.
#[inline]
pub(crate) unsafe fn set_range(bits: *mut u64, first: usize, count: usize) -> Result<(), usize> {
    let mut index = first;
    let mut left = count;
    while left != 0 {
        let shift = index % 64;
        let here = left.min(64 - shift);
        let mask = bits_of(shift, here);
        // SAFETY: the caller's promise.
        unsafe {
            let word = bits.add(index / 64);
            let set = *word & mask;
            if set != 0 {
                return Err(index - shift + set.trailing_zeros() as usize);
            }
            *word |= mask;
        }
        index += here;
        left -= here;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use core::ptr::{null_mut, without_provenance_mut};

    use super::*;
    use crate::size_class::SizeClass;

    #[test]
    fn bits_that_are_neighbours_are_a_run_and_no_others() {
        for first in 0..64 {
            for length in 1..=64 - first {
                let word = bits_of(first, length);
                assert_eq!(word.count_ones() as usize, length);
                let run = only_run(word).expect("they are neighbours");
                assert_eq!((run.first, run.length), (first, length));
            }
        }
        for word in [0, 0b101, 0b1101, 1 | 1 << 63] {
            assert!(only_run(word).is_none(), "{word:b}");
        }
    }

    #[test]
    fn the_highest_block_comes_first() {
        let mut slots = [null_mut(); 4];
        // SAFETY: there is room for three; nobody follows the pointers.
        unsafe { fill(slots.as_mut_ptr(), without_provenance_mut(4096), 48, 3) };
        assert_eq!(slots.map(|block| block.addr()), [4192, 4144, 4096, 0]);
    }

    #[test]
    fn a_run_ends_with_the_blocks_the_slab_or_the_order() {
        let shape = SizeClass::of(64).geometry();
        let run = |indices: &[usize]| {
            let block = |index: &usize| without_provenance_mut(index * 64);
            let blocks: std::vec::Vec<*mut u8> = indices.iter().map(block).collect();
            let run = run_of(&blocks, shape, indices[0]);
            (run.first, run.length)
        };
        let last = usize::from(shape.blocks) - 1;
        assert_eq!(run(&[5]), (5, 1));
        assert_eq!(run(&[5, 7, 8]), (5, 1));
        assert_eq!(run(&[5, 5]), (5, 1));
        assert_eq!(run(&[5, 6, 7, 9]), (5, 3));
        assert_eq!(run(&[5, 4, 3, 4]), (3, 3));
        assert_eq!(run(&[last - 1, last, last + 1]), (last - 1, 2));
        assert_eq!(run(&[1, 0, usize::MAX / 64]), (0, 2));
    }
}
