//! Zero-sized blocks: addresses that no program can read or write.
//!
//! The addresses lie in one inaccessible mapping, which is divided into places of [`PLACE`] bytes.
//! A bit for each place records whether a live block is there. Each search for a free place begins
//! behind the last one found, so that a freed place usually stays free for long and a double free
//! remains detectable.

use core::ptr::{NonNull, null_mut};
use heapdrome_pages::atomic::{
    AtomicPtr, AtomicU64, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed},
};

use heapdrome_malloc_abi::MIN_ALIGNMENT;
use heapdrome_pages::{Access, Pages};

use crate::misuse::{Misuse, report};
use crate::process::HEAPS;
use crate::size_class::UNIT;

/// Number of bytes of a place.
const PLACE: usize = MIN_ALIGNMENT;
/// Number of places. Together they have the size of a unit.
const PLACES: usize = UNIT / PLACE;
/// Number of words in [`LIVE`].
const WORDS: usize = PLACES / 64;

/// Start of the mapping; null until the first block is allocated.
static MAPPING: AtomicPtr<u8> = AtomicPtr::new(null_mut());
/// A bit for each place, set while a live block is there.
static LIVE: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];
/// Index of the place from which the next search starts, modulo the number of places.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// Returns the start of the mapping. The first call creates the mapping. Returns `None` if the
/// system refuses.
fn mapping() -> Option<NonNull<u8>> {
    // Acquire: pairs with the exchange below, so that the mapping was created before this thread
    // uses it.
    if let Some(known) = NonNull::new(MAPPING.load(Acquire)) {
        return Some(known);
    }
    let pages = &HEAPS.memory().pages;
    let made = pages.reserve(UNIT, pages.page_size(), Access::None)?;
    match MAPPING.compare_exchange(null_mut(), made.as_ptr(), AcqRel, Acquire) {
        Ok(_) => Some(made),
        Err(other) => {
            // SAFETY: the mapping was created above, and its address was not published.
            unsafe { pages.release(made, UNIT) };
            NonNull::new(other)
        }
    }
}

/// Returns a zero-sized block; `None` if all places are taken, or if the system refuses the
/// mapping.
pub(super) fn allocate() -> Option<NonNull<u8>> {
    let start = mapping()?;
    // Relaxed, here and below: the bits guard no memory. If one thread allocates a block and
    // another frees it, the program synchronises them.
    let from = NEXT.load(Relaxed) % PLACES;
    for step in 0..=WORDS {
        let word = (from / 64 + step) % WORDS;
        // The first step skips the places before `from`. The last step visits the same word again,
        // and only those places.
        let passed = (1 << (from % 64)) - 1;
        let spared = match step {
            0 => passed,
            WORDS => !passed,
            _ => 0,
        };
        let mut bits = LIVE[word].load(Relaxed);
        while bits | spared != u64::MAX {
            let bit = (bits | spared).trailing_ones() as usize;
            bits = LIVE[word].fetch_or(1 << bit, Relaxed);
            if bits >> bit & 1 == 0 {
                let place = word * 64 + bit;
                NEXT.store(place + 1, Relaxed);
                // SAFETY: the index is below `PLACES`, so the place lies within the mapping.
                return Some(unsafe { start.add(place * PLACE) });
            }
        }
    }
    None
}

/// Returns the index of the place at `address`; `None` if the address lies outside the mapping.
/// Aborts the process if it lies in the mapping but no live block begins there.
fn place_of(address: usize) -> Option<usize> {
    let start = NonNull::new(MAPPING.load(Relaxed))?;
    let offset = address.wrapping_sub(start.addr().get());
    if offset >= UNIT {
        return None;
    }
    let place = offset / PLACE;
    if !offset.is_multiple_of(PLACE) {
        report(Misuse::NotABlock(address));
    }
    if LIVE[place / 64].load(Relaxed) >> (place % 64) & 1 == 0 {
        report(Misuse::DoubleFree(address));
    }
    Some(place)
}

/// Returns whether a live zero-sized block begins at `address`. Aborts the process if it lies in
/// the mapping but no live block begins there.
pub(super) fn is_block(address: usize) -> bool {
    place_of(address).is_some()
}

/// Frees a zero-sized block. Returns false, without any change, if the address lies outside the
/// mapping. Aborts the process if it lies in the mapping but no live block begins there.
pub(super) fn free(address: usize) -> bool {
    let Some(place) = place_of(address) else {
        return false;
    };
    let bit = 1 << (place % 64);
    if LIVE[place / 64].fetch_and(!bit, Relaxed) & bit == 0 {
        report(Misuse::DoubleFree(address));
    }
    true
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no inaccessible mappings")]
    fn every_place_serves_one_block_and_a_freed_one_comes_last() {
        let mut blocks: Vec<_> = core::iter::from_fn(allocate).collect();
        assert_eq!(blocks.len(), PLACES);
        blocks.sort_unstable();
        blocks.dedup();
        assert_eq!(blocks.len(), PLACES, "each place serves one block");
        assert!(blocks.iter().all(|block| is_block(block.addr().get())));
        for block in &blocks[..100] {
            assert!(free(block.addr().get()));
        }
        NEXT.store(50, Relaxed);
        let again: Vec<_> = core::iter::from_fn(allocate).collect();
        assert_eq!(again.len(), 100);
        assert_eq!(
            again[..50],
            blocks[50..100],
            "from where the last was taken"
        );
        assert_eq!(again[50..], blocks[..50]);
        for block in blocks {
            assert!(free(block.addr().get()));
        }
        assert!(!free(0x1000) && !is_block(0x1000), "outside");
    }
}
