//! What the hardened variant writes over freed blocks, and how it sees later that nobody else wrote there.

use core::ptr::NonNull;

use crate::size_class::{CLASSES, SizeClass};

/// What freed blocks are filled with.
const FILL: u8 = 0xdb;
/// As many bytes of a block are looked at again when it is handed out again; twice as many are filled.
const LOOKED_AT: usize = 64;
/// Blocks are filled and looked at in pieces of this size.
const PIECE: usize = size_of::<u128>();

/// What filling needs to know of a class. Pieces lie at all sums of some of the steps: where a block is
/// smaller than what is filled, they overlap, so that nothing branches on the size.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    size: u32,
    by_one: u8,
    by_two: u8,
    by_four: u8,
}

impl Shape {
    /// For blocks of `size` bytes, a multiple of [`PIECE`].
    const fn with_size(size: usize) -> Self {
        Self {
            size: size as u32,
            by_one: Self::step(size, PIECE),
            by_two: Self::step(size, 2 * PIECE),
            by_four: Self::step(size, 4 * PIECE),
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
    pub(crate) fn of(class: SizeClass) -> Self {
        SHAPES[class.number()]
    }

    /// The size of a block.
    #[inline(always)]
    pub(crate) const fn size(&self) -> usize {
        self.size as usize
    }
}

/// By class. There is an entry for every number that there can be, so that no index is out of bounds.
static SHAPES: [Shape; 256] = {
    let mut shapes = [Shape::with_size(0); 256];
    let mut class = 1;
    while class <= CLASSES {
        shapes[class] = Shape::with_size(SizeClass::from_number(class as u8).size());
        class += 1;
    }
    shapes
};

/// Overwrites what the program had in a block, up to 128 bytes of it.
///
/// # Safety
///
/// The block has this shape, and nobody uses it.
#[inline(always)]
pub(crate) unsafe fn fill(block: NonNull<u8>, shape: Shape) {
    // SAFETY: blocks are aligned to 16; the sum of all steps and a piece is not beyond a block's end.
    unsafe {
        for start in [block, block.add(usize::from(shape.by_four))] {
            for start in [start, start.add(usize::from(shape.by_two))] {
                for piece in [start, start.add(usize::from(shape.by_one))] {
                    piece.cast().write([FILL; PIECE]);
                }
            }
        }
    }
}

/// Whether nothing was written to the first [`LOOKED_AT`] bytes of a block since it was filled.
///
/// # Safety
///
/// As for [`fill`].
#[inline(always)]
pub(crate) unsafe fn is_filled(block: NonNull<u8>, shape: Shape) -> bool {
    // SAFETY: as in `fill`.
    unsafe {
        let second = block.add(usize::from(shape.by_two));
        let one = usize::from(shape.by_one);
        all_filled([block, block.add(one), second, second.add(one)])
    }
}

/// Whether four pieces are filled. Written out, since a compiler makes a branch of every eight bytes.
///
/// # Safety
///
/// The pieces may be read.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn all_filled(pieces: [NonNull<u8>; 4]) -> bool {
    use core::arch::x86_64::{
        _mm_and_si128, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_set1_epi8,
    };
    // SAFETY: the caller's promise; SSE2 is part of x86-64.
    unsafe {
        let same = pieces.map(|piece| {
            _mm_cmpeq_epi8(
                _mm_loadu_si128(piece.as_ptr().cast()),
                _mm_set1_epi8(FILL as i8),
            )
        });
        let same = _mm_and_si128(
            _mm_and_si128(same[0], same[1]),
            _mm_and_si128(same[2], same[3]),
        );
        _mm_movemask_epi8(same) == 0xffff
    }
}

/// The same elsewhere.
///
/// # Safety
///
/// The pieces may be read.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
unsafe fn all_filled(pieces: [NonNull<u8>; 4]) -> bool {
    // SAFETY: the caller's promise.
    let found = pieces.map(|piece| unsafe { piece.cast::<u128>().read() });
    found == [u128::from_ne_bytes([FILL; PIECE]); 4]
}

/// The same for a block in a slab, of which whole pages may have been given back to the system since: those
/// read as zero.
///
/// # Safety
///
/// The block has `size` bytes, and nobody uses it.
pub(crate) unsafe fn is_filled_or_purged(block: NonNull<u8>, size: usize, page: usize) -> bool {
    let length = size.min(LOOKED_AT);
    let to_next_page = (page - block.addr().get() % page).min(length);
    // SAFETY: the block has that many bytes.
    let bytes = unsafe { core::slice::from_raw_parts(block.as_ptr(), length) };
    let (here, there) = bytes.split_at(to_next_page);
    let untouched = |part: &[u8]| [FILL, 0].map(|byte| part.iter().all(|&found| found == byte));
    [here, there]
        .map(untouched)
        .iter()
        .all(|[filled, purged]| *filled || *purged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(align(128))]
    struct Block([u8; 128]);

    #[test]
    fn what_is_filled_is_seen_to_be_until_it_is_written_to() {
        for size in (16..=128).step_by(16) {
            let shape = Shape::of(SizeClass::of(size));
            let mut bytes = Block([7; 128]);
            let block = NonNull::from(&mut bytes.0).cast();
            // SAFETY: the block has that many bytes, all of them this test's.
            unsafe {
                fill(block, shape);
                assert!(bytes.0[..size].iter().all(|&byte| byte == FILL));
                assert!(bytes.0[size..].iter().all(|&byte| byte == 7));
                assert!(is_filled(block, shape) && is_filled_or_purged(block, size, 4096));
                block.as_ptr().add(size.min(LOOKED_AT) - 1).write(0);
                assert!(!is_filled(block, shape) && !is_filled_or_purged(block, size, 4096));
            }
        }
    }

    #[test]
    fn pages_that_were_given_back_are_no_misuse() {
        let mut bytes = Block([FILL; 128]);
        bytes.0[..64].fill(0);
        // SAFETY: as above; the second part of the block lies on the next page, as far as this goes.
        unsafe {
            let block = NonNull::from(&mut bytes.0[32]).cast::<u8>();
            assert!(
                !is_filled(block, Shape::of(SizeClass::of(80)))
                    && is_filled_or_purged(block, 80, 64)
            );
            block.as_ptr().write(1);
            assert!(!is_filled_or_purged(block, 80, 64));
        }
    }
}
