//! What the hardened variant writes over freed blocks, and how it sees later that nobody else wrote
//! there.

use core::ptr::NonNull;

use crate::slabs::shape::{PIECE, Shape};

/// What freed blocks are filled with.
const FILL: u8 = 0xdb;
/// As many bytes of a block are looked at again when it is handed out again.
const LOOKED_AT: usize = 64;
/// Overwrites the whole of a block.
///
/// # Safety
///
/// The block has `size` bytes, and nobody uses it.
pub(crate) unsafe fn fill_whole(block: NonNull<u8>, size: usize) {
    // SAFETY: the caller's promise.
    unsafe { block.as_ptr().write_bytes(FILL, size) };
}

/// Overwrites what the program had in a block: as much of it as is looked at, and what lies behind
/// that in the same two lines of the cache.
///
/// # Safety
///
/// The block has this shape, and nobody uses it.
#[inline(always)]
pub(crate) unsafe fn fill(block: NonNull<u8>, shape: &Shape) {
    let rest = shape.rest_from(block.addr().get());
    for start in shape.looked_at() {
        // SAFETY: the sum of all steps and a piece is not beyond a block's end.
        unsafe {
            let piece = block.add(start);
            piece.cast::<[u8; PIECE]>().write([FILL; PIECE]);
            piece.add(rest).cast::<[u8; PIECE]>().write([FILL; PIECE]);
        }
    }
}

/// Whether nothing was written to the first [`LOOKED_AT`] bytes of a block since it was filled.
///
/// # Safety
///
/// As for [`fill`].
#[inline(always)]
pub(crate) unsafe fn is_filled(block: NonNull<u8>, shape: &Shape) -> bool {
    // SAFETY: as in `fill`.
    unsafe { all_filled(shape.looked_at().map(|start| block.add(start))) }
}

/// Whether four pieces are filled. Written out, since a compiler makes a branch of every eight
/// bytes.
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

/// Whether all four pieces hold the fill byte only, on processors other than x86-64.
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

/// Whether a block in a slab is still filled. Whole pages of it may have been given back to the
/// system since: those read as zero.
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
            // SAFETY: the block has that many bytes, all of them this test's.
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
        // SAFETY: as above; the second part of the block lies on the next page, as far as this
        // goes.
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
