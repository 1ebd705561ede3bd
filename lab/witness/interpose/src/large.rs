//! Remembers the addresses of large blocks, so that the calls that free them are timed.
//!
//! Addresses with the same hash share one place, which holds only the latest large block. The free
//! of a block that has lost its place is treated like that of a small block.

use core::sync::atomic::{AtomicUsize, Ordering};

/// Minimum size of a large block in bytes. If every call is recorded, each call that requests one
/// or frees a remembered one is timed, because these calls are rare and much slower than others.
pub const LARGE: u64 = 64 << 10;

/// Minimum size of a huge block in bytes. A call that makes or frees one may take longer than an
/// interruption.
pub const HUGE: u64 = 1 << 20;

/// Odd factor by which an address is multiplied to find its place. Assembly uses it, too.
pub const FACTOR: u32 = 0x61c8_8647;

/// Number of bits by which the lowest 32 bits of the product are shifted right to find the place.
pub const SHIFT: u32 = 23;

const PLACES: usize = 1 << (u32::BITS - SHIFT);

/// Content of an empty place. Differs from 0, because `free` often gets a null pointer.
const NONE: usize = 1;

/// Addresses of large blocks. Assembly reads them.
pub static PLACES_OF_LARGE: [AtomicUsize; PLACES] = [const { AtomicUsize::new(NONE) }; PLACES];

/// Addresses of huge blocks.
static PLACES_OF_HUGE: [AtomicUsize; PLACES] = [const { AtomicUsize::new(NONE) }; PLACES];

fn place(address: usize) -> usize {
    ((address as u32).wrapping_mul(FACTOR) >> SHIFT) as usize
}

/// Remembers a large block of this size.
pub fn set(address: usize, size: u64) {
    // Relaxed: the program's own synchronisation orders this store before a free by another thread.
    // A stale address only makes a free count as that of a large block.
    PLACES_OF_LARGE[place(address)].store(address, Ordering::Relaxed);
    if size >= HUGE {
        PLACES_OF_HUGE[place(address)].store(address, Ordering::Relaxed);
    }
}

/// Forgets a large block. Returns whether it is huge.
pub fn take(address: usize) -> bool {
    PLACES_OF_LARGE[place(address)].store(NONE, Ordering::Relaxed);
    let huge = &PLACES_OF_HUGE[place(address)];
    let is_huge = huge.load(Ordering::Relaxed) == address;
    if is_huge {
        huge.store(NONE, Ordering::Relaxed);
    }
    is_huge
}
