//! Contents that are written into a block when it is allocated and checked when it is freed.
//!
//! A block of 8 bytes or more begins with its tag. From 16 bytes on it ends with the tag's
//! complement; from 9 to 15 bytes it ends with the part of the complement that fits behind the tag.
//! A smaller block holds the part of the tag that fits.

use crate::Failure;
use crate::random::mix;

/// Returns the tag of a block. The caller chooses a `key` for the block, for example from its slot
/// and round.
#[inline]
pub(crate) fn tag(key: u64, size: usize) -> u64 {
    mix(key ^ (size as u64).rotate_left(40) ^ 0x9e37_79b9_7f4a_7c15)
}

/// Returns the required alignment of a block: `asked`, or malloc's default for this size if `asked`
/// is 0. The default is the alignment of the largest type that fits.
#[inline]
pub(crate) fn due_alignment(size: usize, asked: usize) -> usize {
    let due = 1 << (size | 1).ilog2().min(4);
    if asked == 0 { due } else { asked }
}

/// Writes a tag.
///
/// # Safety
/// `block` is valid for writes of `size` bytes, and no other thread reads or writes it.
#[inline]
pub(crate) unsafe fn write(block: *mut u8, size: usize, tag: u64) {
    // SAFETY: all writes lie within the `size` bytes for which `block` is valid, and are unaligned
    // writes.
    unsafe {
        if size >= 8 {
            // Write the complement first: below 16 bytes the tag overlaps it and must not be
            // overwritten.
            let end = block.add(size - 8).cast::<u64>();
            end.write_unaligned((!tag).to_le());
            block.cast::<u64>().write_unaligned(tag.to_le());
        } else {
            write_small(block, size, tag);
        }
    }
}

/// Writes the tag of a block of less than 8 bytes. It uses two or three writes that may overlap,
/// because a copy of variable length would be a function call.
///
/// # Safety
/// The conditions of [`write`] hold, and `size` is below 8.
#[inline]
unsafe fn write_small(block: *mut u8, size: usize, tag: u64) {
    // SAFETY: every access lies within the `size` bytes for which `block` is valid, and is
    // unaligned or of one byte.
    unsafe {
        if size >= 4 {
            let (begin, end) = (tag as u32, (tag >> (8 * (size - 4))) as u32);
            block.cast::<u32>().write_unaligned(begin.to_le());
            block
                .add(size - 4)
                .cast::<u32>()
                .write_unaligned(end.to_le());
        } else if size > 0 {
            for place in [0, size / 2, size - 1] {
                block.add(place).write((tag >> (8 * place)) as u8);
            }
        }
    }
}

/// Reads a tag back, and returns it folded into one number.
///
/// # Errors
/// Returns [`Failure::Corrupt`] if the bytes that [`write`] wrote have changed.
///
/// # Safety
/// `block` is valid for reads of `size` bytes, [`write`] has written a tag into it, and no other
/// thread writes it.
#[inline]
pub(crate) unsafe fn verify(block: *const u8, size: usize, tag: u64) -> Result<u64, Failure> {
    if size < 8 {
        // SAFETY: the conditions of `verify` hold by contract, and `size` is below 8.
        return unsafe { verify_small(block, size, tag) };
    }
    // SAFETY: both reads lie within the `size` bytes for which `block` is valid, cover only bytes
    // that `write` wrote, and are unaligned reads.
    let (begin, end) = unsafe {
        let end = block.add(size - 8).cast::<u64>().read_unaligned();
        (block.cast::<u64>().read_unaligned(), end)
    };
    let (begin, end) = (u64::from_le(begin), u64::from_le(end));
    // Below 16 bytes, the last 8 bytes begin with bytes of the tag. The shift drops these bytes,
    // because `begin` covers them. The shift is done in two halves, because at 8 bytes it covers
    // the whole word. No branch depends on the size: sizes are random, and a mispredicted branch
    // costs more than the malloc of a fast allocator.
    let half = 4 * 16_usize.saturating_sub(size);
    let off = ((end ^ !tag) >> half) >> half;
    if (begin ^ tag) | off != 0 {
        return Err(match begin == tag {
            true => corrupt(block, size, !tag, end),
            false => corrupt(block, size, tag, begin),
        });
    }
    Ok(begin.wrapping_add(end.rotate_left(17)))
}

/// Checks the contents of a block of less than 8 bytes, as [`verify`] does.
///
/// # Safety
/// The conditions of [`verify`] hold, and `size` is below 8.
#[inline]
unsafe fn verify_small(block: *const u8, size: usize, tag: u64) -> Result<u64, Failure> {
    let mut found = 0;
    // SAFETY: every access lies within the `size` bytes for which `block` is valid, and is
    // unaligned or of one byte.
    unsafe {
        if size >= 4 {
            let begin = u32::from_le(block.cast::<u32>().read_unaligned());
            let end = u32::from_le(block.add(size - 4).cast::<u32>().read_unaligned());
            found = u64::from(begin) | (u64::from(end) << (8 * (size - 4)));
        } else if size > 0 {
            for place in [0, size / 2, size - 1] {
                found |= u64::from(block.add(place).read()) << (8 * place);
            }
        }
    }
    let due = tag & ((1 << (8 * size)) - 1);
    match found == due {
        true => Ok(found),
        false => Err(corrupt(block, size, due, found)),
    }
}

#[cold]
fn corrupt(block: *const u8, size: usize, expected: u64, found: u64) -> Failure {
    Failure::Corrupt {
        address: block.addr(),
        size,
        expected,
        found,
    }
}

/// Fills every byte that [`write`] left unchanged.
///
/// # Safety
/// The conditions of [`write`] hold.
#[inline]
pub(crate) unsafe fn fill(block: *mut u8, size: usize, byte: u8) {
    if size > 16 {
        // SAFETY: the bytes between the tag and the last 8 lie within the `size` bytes for which
        // `block` is valid.
        unsafe { block.add(8).write_bytes(byte, size - 16) };
    }
}

/// Writes one byte in every 4096 of the first `size` bytes, so that their pages are resident. Skips
/// the first 8 and the last 8 bytes, which hold the tag if the block has `size` bytes.
///
/// # Safety
/// The conditions of [`write`] hold.
#[inline]
pub(crate) unsafe fn touch_pages(block: *mut u8, size: usize) {
    let mut place = PAGE;
    while place + 8 < size {
        // SAFETY: `place` is below `size`. The write is volatile because no code reads these bytes.
        unsafe { block.add(place).write_volatile(1) };
        place += PAGE;
    }
}

/// Size of a word of [`write_words`].
pub(crate) const WORD: usize = size_of::<u64>();

/// Returns the word at a place of a block whose words [`write_words`] wrote.
#[inline]
fn word(key: u64, place: usize) -> u64 {
    key.wrapping_add((place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Writes every word from the byte `from` to the byte `to`. Each word follows from `key` and from
/// its place, so that a word that moved is noticed.
///
/// # Safety
/// `block` is valid for writes of `to` bytes and aligned to a word, `from` and `to` are multiples
/// of [`WORD`], and no other thread reads or writes the block.
#[inline]
pub(crate) unsafe fn write_words(block: *mut u8, from: usize, to: usize, key: u64) {
    let words = block.cast::<u64>();
    for place in from / WORD..to / WORD {
        // SAFETY: by this function's contract the word lies within the bytes for which `block` is
        // valid, and is aligned.
        unsafe { words.add(place).write(word(key, place)) };
    }
}

/// Reads all words of the first `size` bytes back, and returns their sum.
///
/// # Errors
/// Returns [`Failure::Corrupt`] if a word is not the one that [`write_words`] wrote.
///
/// # Safety
/// `block` is valid for reads of `size` bytes and aligned to a word, [`write_words`] wrote all its
/// words, and no other thread writes it.
pub(crate) unsafe fn verify_words(block: *const u8, size: usize, key: u64) -> Result<u64, Failure> {
    let words = block.cast::<u64>();
    let mut sum = 0_u64;
    for place in 0..size / WORD {
        // SAFETY: by this function's contract the word lies within the bytes for which `block` is
        // valid, and is aligned.
        let (found, due) = (unsafe { words.add(place).read() }, word(key, place));
        if found != due {
            return Err(corrupt(block, size, due, found));
        }
        sum = sum.wrapping_add(found);
    }
    Ok(sum)
}

/// Smallest page size of the supported machines.
const PAGE: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_that_is_written_is_looked_at() {
        for size in 1..64_usize {
            let tag = tag(size as u64, size);
            // Up to 16 bytes this covers the whole block.
            for place in (0..size.min(8)).chain(size.saturating_sub(8)..size) {
                let mut block = vec![0xa5_u8; size];
                // SAFETY: `block` has `size` bytes, and this test owns it.
                unsafe {
                    write(block.as_mut_ptr(), size, tag);
                    assert!(verify(block.as_ptr(), size, tag).is_ok());
                    block[place] ^= 1;
                    let found = verify(block.as_ptr(), size, tag);
                    assert!(
                        matches!(found, Err(Failure::Corrupt { .. })),
                        "{size} {place}"
                    );
                }
            }
        }
    }

    #[test]
    fn filling_writes_the_rest_and_spares_the_tag() {
        for size in 1..64 {
            let tag = u64::from_le_bytes([3; 8]);
            let mut block = vec![0_u8; size];
            // SAFETY: `block` has `size` bytes, and this test owns it.
            unsafe {
                write(block.as_mut_ptr(), size, tag);
                fill(block.as_mut_ptr(), size, 7);
                assert!(verify(block.as_ptr(), size, tag).is_ok(), "{size}");
            }
            assert!(block.iter().all(|byte| *byte != 0), "{size}");
        }
    }

    #[test]
    fn every_word_that_is_written_is_looked_at() {
        let mut block = [0_u64; 9];
        let first = block.as_mut_ptr().cast::<u8>();
        // SAFETY: `block` has 72 bytes and is aligned to a word, and this test owns it.
        unsafe {
            write_words(first, 0, 24, 7);
            write_words(first, 24, 72, 7);
            assert!(verify_words(first, 72, 7).is_ok());
            for place in 0..72 {
                *first.add(place) ^= 1;
                let found = verify_words(first, 72, 7);
                assert!(matches!(found, Err(Failure::Corrupt { .. })), "{place}");
                *first.add(place) ^= 1;
            }
        }
        block.swap(1, 2);
        // SAFETY: `block` has 72 bytes and is aligned to a word, and this test owns it.
        assert!(unsafe { verify_words(block.as_ptr().cast(), 72, 7) }.is_err());
    }

    #[test]
    fn pages_are_touched_and_tags_survive() {
        for size in [4096, 4097, 8191, 8192, 8193, 8200, 8201, 20_000] {
            let mut block = vec![0_u8; size];
            // SAFETY: `block` has `size` bytes, and this test owns it.
            unsafe {
                write(block.as_mut_ptr(), size, 77);
                touch_pages(block.as_mut_ptr(), size);
                assert!(verify(block.as_ptr(), size, 77).is_ok(), "{size}");
            }
            let page_holds = |page: &[u8]| page.iter().any(|byte| *byte != 0);
            assert!(block.chunks(PAGE).all(page_holds), "{size}");
        }
    }

    #[test]
    fn alignment_is_that_of_the_largest_type_that_fits() {
        let due: Vec<_> = [0, 1, 2, 3, 4, 7, 8, 15, 16, 1000]
            .map(|size| due_alignment(size, 0))
            .into();
        assert_eq!(due, [1, 1, 2, 2, 4, 4, 8, 8, 16, 16]);
        assert_eq!(due_alignment(3, 64), 64);
    }
}
