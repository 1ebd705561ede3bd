//! Checks of blocks: their alignment, the zeros of calloc, and a pattern. The pattern fills blocks,
//! and is compared before they are freed, after they were resized, and at the end of the replay.
//! The comparison detects an allocator that returns overlapping blocks, or loses the content of a
//! block.

use super::stop::{ALLOCATOR, stop};

/// Maximum number of bytes of a block that is filled completely.
const WHOLE: usize = 4 << 10;

/// Number of bytes that are filled at each end of a larger block.
const PART: usize = WHOLE / 2;

/// Distance in bytes between the filled words in the middle of a larger block.
const APART: usize = 512;

/// Bytes of a word of the pattern.
const WORD: usize = size_of::<u64>();

/// Odd factors of a slot (`RATIO`) and of an offset in a block (`OTHER`), so that different slots
/// and offsets have different patterns.
const RATIO: u64 = 0x9e37_79b9_7f4a_7c15;
const OTHER: u64 = 0xc2b2_ae3d_27d4_eb4f;

/// Maximum alignment in bytes that malloc guarantees.
const GUARANTEED: usize = 16;

/// Returns the offset and the length, in bytes, of each word that is filled in a block of `size`
/// bytes.
fn filled(size: usize) -> impl Iterator<Item = (usize, usize)> {
    let (front, back) = match size <= WHOLE {
        true => (size, size),
        false => (PART, size - PART),
    };
    let front_words = (0..front).step_by(WORD).map(move |at| (at, front));
    let between = (front..back).step_by(APART).map(move |at| (at, back));
    let back_words = (back..size).step_by(WORD).map(move |at| (at, size));
    let all = front_words.chain(between).chain(back_words);
    all.map(|(place, end)| (place, WORD.min(end - place)))
}

/// Returns the pattern of the word at an offset of a block.
fn pattern(slot: u32, place: usize) -> [u8; WORD] {
    let word = (u64::from(slot) + 1).wrapping_mul(RATIO) ^ (place as u64).wrapping_mul(OTHER);
    word.to_ne_bytes()
}

/// Fills a new block with the pattern of its slot.
///
/// # Safety
/// `block` has `size` bytes, and no other thread uses them.
pub(super) unsafe fn fill(block: *mut u8, slot: u32, size: usize) {
    for (place, length) in filled(size) {
        let word = pattern(slot, place);
        // SAFETY: `filled` returns only ranges of at most a word within `size` bytes. By this
        // function's contract the block has these bytes, and no other thread uses them.
        unsafe {
            block
                .add(place)
                .copy_from_nonoverlapping(word.as_ptr(), length)
        };
    }
}

/// Compares the first `kept` bytes of a block with the pattern of a filled block of `size` bytes.
/// After a resize, `kept` may be less than `size`. Ends the process with an error if a byte
/// differs.
///
/// # Safety
/// `block` has `kept` bytes, and no other thread uses them. Those of them that [`fill`] fills in a
/// block of `size` bytes are initialised.
pub(super) unsafe fn compare(block: *const u8, slot: u32, size: usize, kept: usize) {
    for (place, length) in filled(size).take_while(|(place, _)| *place < kept) {
        let word = pattern(slot, place);
        let length = length.min(kept - place);
        // SAFETY: the bytes lie below `kept`, and so within the block. By this function's contract
        // they are initialised, and no other thread uses them.
        let found = unsafe { std::slice::from_raw_parts(block.add(place), length) };
        if found != &word[..length] {
            let byte = (0..length).find(|byte| found[*byte] != word[*byte]);
            changed(place + byte.unwrap_or(0), size);
        }
    }
}

#[cold]
fn changed(byte: usize, size: usize) -> ! {
    stop(
        ALLOCATOR,
        format_args!("wrong content: byte {byte} of a block of {size} bytes was changed"),
    )
}

/// Ends the process if a block does not have the alignment that its call promises.
pub(super) fn aligned(block: *const u8, alignment: usize, size: usize) {
    if !block.addr().is_multiple_of(alignment) {
        stop(
            ALLOCATOR,
            format_args!(
                "wrong address: a block of {size} bytes is not aligned to {alignment} bytes"
            ),
        );
    }
}

/// Returns the alignment that malloc guarantees for a size. It suffices for every object of at most
/// this size.
pub(super) fn guaranteed(size: usize) -> usize {
    match size {
        0 => 1,
        size => GUARANTEED.min(1 << size.ilog2()),
    }
}

/// Ends the process if a block from calloc is not zero. Checks only the words that [`fill`] would
/// fill.
///
/// # Safety
/// `block` came from calloc and has `size` bytes, and no other thread uses them.
pub(super) unsafe fn zeroed(block: *const u8, size: usize) {
    for (place, length) in filled(size) {
        // SAFETY: `filled` returns only ranges within `size` bytes. By this function's contract the
        // block has these bytes, calloc has initialised them, and no other thread uses them.
        let bytes = unsafe { std::slice::from_raw_parts(block.add(place), length) };
        if let Some(byte) = bytes.iter().position(|byte| *byte != 0) {
            let byte = place + byte;
            stop(
                ALLOCATOR,
                format_args!("wrong content: byte {byte} of {size} from calloc is not zero"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filled_block_compares_and_slots_and_places_have_patterns_of_their_own() {
        for size in [0, 1, 7, 8, 100, WHOLE, WHOLE + 3, 4 * WHOLE] {
            let mut block = vec![0_u8; size];
            // SAFETY: the block has this size and belongs to this test, and `fill` runs before
            // `compare`.
            unsafe {
                fill(block.as_mut_ptr(), 17, size);
                compare(block.as_ptr(), 17, size, size);
                compare(block.as_ptr(), 17, size, size / 2);
            }
        }
        assert_ne!(pattern(17, 0), pattern(18, 0));
        assert_ne!(pattern(17, 0), pattern(17, 8));
        let mut end = 0;
        for (place, length) in filled(3 * WHOLE + 5) {
            assert!(place >= end, "words do not overlap");
            end = place + length;
        }
        assert_eq!(end, 3 * WHOLE + 5);
        assert_eq!(
            [0, 1, 7, 8, 15, 16, 4096].map(guaranteed),
            [1, 1, 4, 8, 8, 16, 16]
        );
    }
}
