//! Rings of stacks: shared memory through which copies of threads' stacks reach the collector. The
//! library and the collector both compile this file.
//!
//! A thread that records stacks has a ring of bytes beside its ring of entries. The place of a copy
//! is the number of bytes that were reserved before it, counted over all laps of the ring. A copy
//! is valid once its header contains the seal of its place.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::ring::Line;

/// Prefix of the names of files that contain a [`StackRing`]. The rest is the name of the thread's
/// ring without its prefix.
pub const PREFIX: &str = "stacks-";

/// Prefix of the names of files that list the memory mappings of a process, in the form of
/// `/proc/PID/maps`. One file lists the mappings at the first stack, and another one those at the
/// exit. The rest of the name is the process's ID and image, followed by [`LAST_MAPS`] at the exit.
pub const MAPS_PREFIX: &str = "maps-";

/// Number in the name of the file that lists the memory mappings at the exit of a process.
pub const LAST_MAPS: u32 = 1;

/// Last line of a file that lists memory mappings. A file without this line is incomplete.
pub const MAPS_END: &str = "end\n";

/// Size of a ring in bytes. It has room for 15 copies of the largest size, or for hundreds of usual
/// copies.
pub const BYTES: u64 = 1 << 20;

/// Maximum number of bytes of a stack that are copied. The stack of a C program with 128 frames
/// needs a tenth of this size. The stack of an interpreter that calls itself recursively needs all
/// of it.
pub const MAX_COPY: u64 = 64 << 10;

/// Number of bytes of a header. The places of headers are multiples of this number.
pub const HEADER_BYTES: u64 = size_of::<Header>() as u64;

/// Header of a copy.
#[repr(C, align(64))]
pub struct Header {
    /// [`seal`] of the header's place if the copy is complete. [`skip`] of the place if there is no
    /// copy, and the next header is at the beginning of the ring.
    pub seal: AtomicU64,
    /// Number of bytes from this header to the next.
    pub room: AtomicU64,
    /// Number of bytes of the stack that follow this header.
    pub length: AtomicU64,
    /// Address to which the recorded call returns.
    pub return_address: AtomicU64,
    /// Stack pointer after that return: the address of the first byte of the copy.
    pub stack_pointer: AtomicU64,
    /// Frame pointer after that return.
    pub frame_pointer: AtomicU64,
}

/// A ring of stacks.
#[repr(C)]
pub struct StackRing {
    /// Place of the next copy to reserve.
    pub reserved: Line,
    /// Place of the next copy to read.
    pub taken: Line,
    /// Headers and copies.
    pub words: [AtomicU64; (BYTES / 8) as usize],
}

/// Returns the seal of a complete copy: the place plus one, multiplied by an odd constant. Words of
/// older copies are therefore unlikely to equal a seal.
pub const fn seal(place: u64) -> u64 {
    place.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Returns the seal of a header that skips the end of the ring, because the next copy does not fit
/// there.
pub const fn skip(place: u64) -> u64 {
    !seal(place)
}

/// Returns the number of bytes that a copy of this length takes, including its header.
pub const fn bytes_of(length: u64) -> u64 {
    HEADER_BYTES + length.next_multiple_of(HEADER_BYTES)
}

impl StackRing {
    /// Returns the header at a place.
    pub fn header(&self, place: u64) -> &Header {
        let word = place % BYTES / 8;
        // SAFETY: `words` follows two `Line`s, so it is aligned to 128 bytes. `place` and the
        // ring's length are multiples of `HEADER_BYTES`, because copies are reserved in steps of
        // `bytes_of`, and readers round. So the header lies in `words` and is aligned. `words` and
        // `Header` consist only of atomics.
        unsafe { &*self.words.as_ptr().add(word as usize).cast::<Header>() }
    }

    /// Returns the first place that is not free.
    pub fn limit(&self) -> u64 {
        // Acquire: pairs with the collector's release, so the collector has read the copies that
        // are overwritten.
        self.taken.0.load(Ordering::Acquire) + BYTES
    }

    /// Reserves room for a copy of this length. Returns its place, and the place of a header that
    /// skips the end of the ring if one is needed. The caller waits until both are free.
    pub fn reserve(&self, length: u64) -> (u64, Option<u64>) {
        let bytes = bytes_of(length);
        // Relaxed: only one thread reserves, and the exchange excludes its signal handlers.
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
