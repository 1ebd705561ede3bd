//! Fills freed blocks in the hardened variant, and checks later that the program has not written to
//! them.

use core::ptr::NonNull;

use crate::slabs::shape::{PIECE, Shape};

/// Byte that fills freed blocks.
const FILL: u8 = 0xdb;
/// Maximum number of bytes that are checked when a freed block is handed out again.
const LOOKED_AT: usize = 64;
/// Overwrites a whole block with [`FILL`].
///
/// # Safety
///
/// The block has `size` bytes, and is free.
pub(crate) unsafe fn fill_whole(block: NonNull<u8>, size: usize) {
    // SAFETY: the block has `size` bytes and is free, by this function's contract.
    unsafe { block.as_ptr().write_bytes(FILL, size) };
}

/// Fills the start of a block: the checked bytes and the bytes behind them, up to the end of the
/// block. In blocks of at least two cache lines, the fill ends with the second line.
///
/// # Safety
///
/// The block has this shape, and is free.
#[inline(always)]
pub(crate) unsafe fn fill(block: NonNull<u8>, shape: &Shape) {
    let rest = shape.rest_from(block.addr().get());
    for start in shape.looked_at() {
        // SAFETY: the block is free, by this function's contract. By the construction of shapes,
        // every piece ends within the block.
        unsafe {
            let piece = block.add(start);
            piece.cast::<[u8; PIECE]>().write([FILL; PIECE]);
            piece.add(rest).cast::<[u8; PIECE]>().write([FILL; PIECE]);
        }
    }
}

/// Returns whether the checked bytes of a block, its first [`LOOKED_AT`] or all of them, still
/// contain [`FILL`].
///
/// # Safety
///
/// The conditions of [`fill`] hold.
#[inline(always)]
pub(crate) unsafe fn is_filled(block: NonNull<u8>, shape: &Shape) -> bool {
    // SAFETY: the block has this shape, by this function's contract. By the construction of shapes,
    // every piece is aligned and ends within the block.
    unsafe { all_filled(shape.looked_at().map(|start| block.add(start))) }
}

/// Returns whether four pieces of [`PIECE`] bytes contain only [`FILL`]. Uses intrinsics, because
/// compilers would emit a branch for every eight bytes.
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
    // SAFETY: the pieces may be read, by this function's contract; SSE2 is part of x86-64.
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

/// Returns whether four pieces of [`PIECE`] bytes contain only [`FILL`], on processors other than
/// x86-64.
///
/// # Safety
///
/// The pieces may be read, and are aligned to their size.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
unsafe fn all_filled(pieces: [NonNull<u8>; 4]) -> bool {
    // SAFETY: the pieces may be read and are aligned, by this function's contract.
    let found = pieces.map(|piece| unsafe { piece.cast::<u128>().read() });
    found == [u128::from_ne_bytes([FILL; PIECE]); 4]
}

/// Returns whether the checked bytes of a block in a slab are still filled. Bytes on a purged page
/// read as zero, which counts as filled. Pages have `page` bytes.
///
/// # Safety
///
/// The block has `size` bytes, and is free.
pub(crate) unsafe fn is_filled_or_purged(block: NonNull<u8>, size: usize, page: usize) -> bool {
    let length = size.min(LOOKED_AT);
    let to_next_page = (page - block.addr().get() % page).min(length);
    // SAFETY: the block has `size` bytes, by this function's contract.
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
    use crate::size_class::SizeClass;

    #[repr(align(128))]
    struct Block([u8; 256]);

    #[test]
    fn what_is_filled_is_seen_to_be_until_it_is_written_to() {
        let sizes = (16..=192).step_by(16);
        for (size, before) in sizes.flat_map(|size| [0, 16, 32, 48].map(|before| (size, before))) {
            let shape = Shape::of(SizeClass::of(size));
            let mut bytes = Block([7; 256]);
            let lines = if size < 128 { size } else { 128 - before };
            let filled = before + lines;
            // SAFETY: the block lies in `bytes`, which belongs to this test.
            unsafe {
                let block = NonNull::from(&mut bytes.0).cast::<u8>().add(before);
                fill(block, shape);
                assert!(bytes.0[before..filled].iter().all(|&byte| byte == FILL));
                assert!(bytes.0[..before].iter().all(|&byte| byte == 7));
                assert!(bytes.0[filled..].iter().all(|&byte| byte == 7));
                assert!(is_filled(block, shape) && is_filled_or_purged(block, size, 4096));
                block.as_ptr().add(size.min(LOOKED_AT) - 1).write(0);
                assert!(!is_filled(block, shape) && !is_filled_or_purged(block, size, 4096));
            }
        }
    }

    #[test]
    fn pages_that_were_given_back_are_no_misuse() {
        let mut bytes = Block([FILL; 256]);
        bytes.0[..64].fill(0);
        // SAFETY: the block lies in `bytes`, which belongs to this test. With pages of 64 bytes,
        // its bytes from 32 on lie on the second page.
        unsafe {
            let block = NonNull::from(&mut bytes.0).cast::<u8>().add(32);
            assert!(
                !is_filled(block, Shape::of(SizeClass::of(80)))
                    && is_filled_or_purged(block, 80, 64)
            );
            block.as_ptr().write(1);
            assert!(!is_filled_or_purged(block, 80, 64));
        }
    }
}
