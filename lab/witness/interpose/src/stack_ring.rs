//! Rings of stacks: how the memory of a thread's stack reaches the collector. Shared memory of the
//! recorded processes and of the collector, which both compile this file.
//!
//! Beside its ring of entries, a thread that records stacks has one of bytes. Places are counted in
//! bytes that were ever reserved, as in a ring that does not end. A copy is valid once its header
//! carries the seal of its place.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::ring::Line;

/// Begins the names of files that hold a [`StackRing`]; the rest is that of the thread's ring.
pub const PREFIX: &str = "stacks-";

/// Begins the names of files that hold the mappings of a process as `/proc/PID/maps` shows them,
/// when its first stack is recorded; the rest are its number and its image.
pub const MAPS_PREFIX: &str = "maps-";

/// The number of the file with the mappings of a process that ends by itself.
pub const LAST_MAPS: u32 = 1;

/// Ends a file of mappings. One without it is not complete.
pub const MAPS_END: &str = "end\n";

/// Bytes of a ring: 16 of the largest copies, and hundreds of usual ones.
pub const BYTES: u64 = 1 << 20;

/// Bytes of a stack that are copied at most. 128 frames of a C program need a tenth; those of an
/// interpreter that calls itself need all.
pub const MAX_COPY: u64 = 64 << 10;

/// Headers lie at multiples of their size.
pub const HEADER_BYTES: u64 = size_of::<Header>() as u64;

/// Precedes a copy.
#[repr(C, align(64))]
pub struct Header {
    /// [`seal`] of its place once the copy is complete; [`skip`] of its place if there is none, and
    /// the next header is at the beginning of the ring.
    pub seal: AtomicU64,
    /// Bytes from this header to the next.
    pub room: AtomicU64,
    /// Number of bytes of the stack that follow this header.
    pub length: AtomicU64,
    /// The address to which the recorded call returns.
    pub return_address: AtomicU64,
    /// The stack pointer after that return: the address of the first byte of the copy.
    pub stack_pointer: AtomicU64,
    /// The frame pointer after that return.
    pub frame_pointer: AtomicU64,
}

/// A ring of stacks.
#[repr(C)]
pub struct StackRing {
    /// The place of the next copy to reserve.
    pub reserved: Line,
    /// The place of the next copy to read.
    pub taken: Line,
    /// Headers and copies.
    pub words: [AtomicU64; (BYTES / 8) as usize],
}

/// Returns the first word of a complete copy. It is an odd multiple of the place plus one, so that
/// contents of older copies are not mistaken for it.
pub const fn seal(place: u64) -> u64 {
    place.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Returns the first word of a header that skips the end of the ring, which is too short for the
/// next copy.
pub const fn skip(place: u64) -> u64 {
    !seal(place)
}

/// Returns the bytes that a copy takes with its header.
pub const fn bytes_of(length: u64) -> u64 {
    HEADER_BYTES + length.next_multiple_of(HEADER_BYTES)
}

impl StackRing {
    /// Returns the header at a place.
    pub fn header(&self, place: u64) -> &Header {
        let word = place % BYTES / 8;
        // SAFETY: places are multiples of a header's size, as is the ring's, so the header lies in
        // the words and is aligned as they are. Both consist of atomics.
        unsafe { &*self.words.as_ptr().add(word as usize).cast::<Header>() }
    }

    /// Returns the first place that is not free.
    pub fn limit(&self) -> u64 {
        // Acquire pairs with the collector's release: the collector has read the copies that are
        // overwritten.
        self.taken.0.load(Ordering::Acquire) + BYTES
    }

    /// Reserves room for a copy of a length: its place, and the place of a header that skips the
    /// end of the ring, if one is needed. The caller waits until they are free.
    pub fn reserve(&self, length: u64) -> (u64, Option<u64>) {
        let bytes = bytes_of(length);
        // Relaxed: only one thread reserves; the exchange excludes its signal handlers.
        let mut at = self.reserved.0.load(Ordering::Relaxed);
        loop {
            let room = BYTES - at % BYTES;
            let place = if room < bytes { at + room } else { at };
            let (old, new) = (at, place + bytes);
            match self.reserved.0.compare_exchange_weak(
                old,
                new,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return (place, (place != old).then_some(old)),
                Err(now) => at = now,
            }
        }
    }
}
