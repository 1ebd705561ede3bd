//! Runs of adjacent blocks in a slab, which are taken and given back in one batch.

use crate::size_class::Geometry;

/// Fills `slots` with adjacent blocks of `size` bytes in descending order. The last slot gets
/// `lowest`.
#[inline]
pub(super) fn fill(slots: &mut [*mut u8], lowest: *mut u8, size: usize) {
    let mut block = lowest;
    for slot in slots.iter_mut().rev() {
        *slot = block;
        block = block.wrapping_add(size);
    }
}

/// Returns the set bits of a word as a run; `None` if there are none, or if they are not adjacent.
/// Slabs whose blocks are freed in random order rarely have such words, but the test is cheap.
#[inline]
pub(super) fn only_run(word: u64) -> Option<Run> {
    let first = word.trailing_zeros();
    let above = word.wrapping_add(word & word.wrapping_neg());
    (word != 0 && word & above == 0).then(|| Run {
        first: first as usize,
        length: (64 - word.leading_zeros() - first) as usize,
    })
}

/// Returns a word with `count` set bits, from bit `first` upwards. `count` is at least 1.
#[inline]
pub(super) const fn bits_of(first: usize, count: usize) -> u64 {
    (!0 >> (64 - count)) << first
}

/// Adjacent blocks of a slab, or adjacent set bits of a word.
pub(super) struct Run {
    /// Lowest index of the run.
    pub(super) first: usize,
    pub(super) length: usize,
}

/// Returns the run of adjacent blocks at the start of `blocks`, in ascending or descending order.
/// The run has at least one block. `index` is the index of `blocks[0]` in its slab. Programs often
/// free many blocks in the order of their allocation, or in reverse.
#[inline]
pub(super) fn run_of(blocks: &[*mut u8], shape: &Geometry, index: usize) -> Run {
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
        fill(&mut slots[..3], without_provenance_mut(4096), 48);
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
