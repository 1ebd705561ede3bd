//! Writes to new blocks, as a program would.

use crate::options::Touch;

/// Size of a page in bytes.
const PAGE: usize = 4096;

/// Size of a word in bytes.
const WORD: usize = size_of::<u64>();

/// Value of each byte that is not written as part of a word.
const BYTE: u8 = 1;

/// Writes to the bytes of a block from `begin` to `end`, in the way of the [`Touch`] whose
/// discriminant is `TOUCH`.
///
/// # Safety
/// `block` has `end` bytes, which no other thread uses meanwhile.
#[inline(always)]
pub(super) unsafe fn touch<const TOUCH: u8>(block: *mut u8, begin: usize, end: usize) {
    if TOUCH == Touch::None as u8 || begin >= end {
        return;
    }
    if TOUCH == Touch::All as u8 {
        // SAFETY: the bytes lie within the block.
        unsafe { block.add(begin).write_bytes(BYTE, end - begin) };
        return;
    }
    if TOUCH == Touch::First as u8 {
        if begin == 0 {
            // SAFETY: `begin < end`, within the block.
            unsafe { word(block, 0, end) };
        }
        return;
    }
    let mut place = begin;
    while place < end {
        // SAFETY: `place < end`, within the block.
        unsafe { word(block, place, end) };
        place += PAGE - (block.addr() + place) % PAGE;
    }
}

/// Writes a word, or a byte if the place is not aligned or has no room for a word.
///
/// # Safety
/// `block` has `end` bytes, `place` is below `end`, and no other thread uses the block meanwhile.
#[inline(always)]
unsafe fn word(block: *mut u8, place: usize, end: usize) {
    // SAFETY: `place` lies within the block. The writes are volatile, so the compiler keeps them
    // although nothing reads them.
    unsafe {
        let at = block.add(place);
        if end - place >= WORD && at.cast::<u64>().is_aligned() {
            at.cast::<u64>().write_volatile(1);
        } else {
            at.write_volatile(BYTE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the offsets of the bytes that `touch` writes in a block. The block begins within a
    /// page.
    fn written<const TOUCH: u8>(begin: usize, end: usize) -> Vec<usize> {
        #[repr(align(4096))]
        struct Pages([u8; 4 * PAGE]);
        let mut pages = Box::new(Pages([0; 4 * PAGE]));
        // SAFETY: the pages have room for `end` bytes after the first 64, and nothing else uses the
        // pages.
        unsafe { touch::<TOUCH>(pages.0.as_mut_ptr().add(64), begin, end) };
        let bytes = pages.0[64..].iter().enumerate();
        bytes
            .filter(|(_, byte)| **byte != 0)
            .map(|(place, _)| place)
            .collect()
    }

    #[test]
    fn every_way_writes_where_it_says_and_nowhere_else() {
        const PAGES: u8 = Touch::Pages as u8;
        assert!(written::<{ Touch::None as u8 }>(0, 100).is_empty());
        assert_eq!(written::<{ Touch::First as u8 }>(0, 9000), [0]);
        assert!(written::<{ Touch::First as u8 }>(10, 9000).is_empty());
        assert_eq!(written::<PAGES>(0, 9000), [0, 4032, 8128]);
        assert_eq!(written::<PAGES>(0, 4033), [0, 4032]);
        assert_eq!(written::<PAGES>(5000, 9000), [5000, 8128]);
        assert!(written::<PAGES>(0, 0).is_empty());
        assert_eq!(written::<{ Touch::All as u8 }>(3, 9), [3, 4, 5, 6, 7, 8]);
    }
}
