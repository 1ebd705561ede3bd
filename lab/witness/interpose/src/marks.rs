//! Marks the addresses of sampled blocks: one bit for each 8 bytes of address space.
//!
//! A bit belongs to the owner of the block that begins at its address. It is set before a function
//! returns the block, and cleared before the allocator is called to free the block. So no other
//! thread can own the address in the meantime. Operations are atomic only because neighbouring
//! blocks share a word. A forked child inherits the bits with the blocks.
//!
//! Most freed blocks have no mark. A filter with one byte for many addresses usually shows this
//! without reading the bits, which lie in as many cache lines as the blocks.
//!
//! A mark only shows that a block is recorded, because the collector knows its size and thread.
//! [`crate::shadow`] keeps both for every block, in 32 times as many bits. A recording must not
//! change the program's memory use by that much.

use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, Ordering};

use crate::kernel;
use crate::own::is_sandboxed;
use crate::system;

/// Binary logarithm of the number of bytes of address space that share a bit. Allocators align
/// blocks to at least 8 bytes.
pub const GRANULE_BITS: u32 = 3;

/// Binary logarithm of the number of bytes of address space that share a chunk of bits. A chunk is
/// mapped when its first bit is set.
pub const CHUNK_BITS: u32 = 26;

/// Number of chunks. Addresses of programs are below 2^48.
pub const CHUNKS: usize = 1 << (48 - CHUNK_BITS);

/// Binary logarithm of the number of bits in a word.
pub const WORD_BITS: u32 = u32::BITS.ilog2();

const WORDS: usize = 1 << (CHUNK_BITS - GRANULE_BITS - WORD_BITS);

/// Odd factor by which an address is multiplied to find its byte of the filter.
pub const FACTOR: u32 = 0x61c8_8647;

/// Number of bits by which the lowest 32 bits of the product are shifted right to find the byte.
pub const SHIFT: u32 = 20;

/// Number of marked addresses that share a byte, for each byte. A number of 255 stays, because its
/// true value may be larger.
pub static FILTER: [AtomicU8; 1 << (u32::BITS - SHIFT)] =
    [const { AtomicU8::new(0) }; 1 << (u32::BITS - SHIFT)];

/// The chunks, indexed by address; each is null until one of its bits is set. The directory itself
/// is null until [`begin`] maps it.
pub static DIRECTORY: AtomicPtr<AtomicPtr<AtomicU32>> = AtomicPtr::new(null_mut());

/// Maps the directory, and returns whether that succeeded.
pub fn begin() -> bool {
    if is_on() {
        return true;
    }
    let Some(fresh) = map(CHUNKS * size_of::<usize>()) else {
        return false;
    };
    publish(&DIRECTORY, fresh.cast(), CHUNKS * size_of::<usize>());
    true
}

/// Returns whether the directory is mapped, which means that this process records a sample.
pub fn is_on() -> bool {
    !DIRECTORY.load(Ordering::Acquire).is_null()
}

/// Sets the bit of an address. Returns false if the address has no bit, or the chunk with the bit
/// cannot be mapped.
pub fn set(address: usize) -> bool {
    let Some(chunk) = chunk(address) else {
        return false;
    };
    if !address.is_multiple_of(1 << GRANULE_BITS) {
        return false;
    }
    if chunk.load(Ordering::Acquire).is_null() {
        let length = WORDS * size_of::<AtomicU32>();
        let Some(fresh) = map(length) else {
            return false;
        };
        publish(chunk, fresh.cast(), length);
    }
    let Some((word, bit)) = word(address) else {
        return false;
    };
    // Relaxed: the program's own synchronisation orders the handover of the address to another
    // thread.
    if word.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
        change_filter(address, 1);
    }
    true
}

/// Adds `by` to the number of marked addresses that share an address's byte of the filter.
fn change_filter(address: usize, by: i8) {
    let place = (address as u32).wrapping_mul(FACTOR) >> SHIFT;
    let change = |number: u8| (number != u8::MAX).then(|| number.saturating_add_signed(by));
    // Relaxed: see `set`.
    let byte = &FILTER[place as usize];
    let _ = byte.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
}

/// Clears the bit of an address, and returns whether it was set.
pub fn take(address: usize) -> bool {
    // Relaxed: see `set`. The load avoids the locked instruction for most addresses.
    let is_marked = word(address).is_some_and(|(word, bit)| {
        word.load(Ordering::Relaxed) & bit != 0
            && word.fetch_and(!bit, Ordering::Relaxed) & bit != 0
    });
    if is_marked {
        change_filter(address, -1);
    }
    is_marked
}

fn chunk(address: usize) -> Option<&'static AtomicPtr<AtomicU32>> {
    let directory = DIRECTORY.load(Ordering::Acquire);
    if directory.is_null() || address >> CHUNK_BITS >= CHUNKS {
        return None;
    }
    // SAFETY: the directory has `CHUNKS` entries and is never unmapped.
    Some(unsafe { &*directory.add(address >> CHUNK_BITS) })
}

/// Returns the word that contains an address's bit, and that bit as a mask; `None` if the word is
/// not mapped.
fn word(address: usize) -> Option<(&'static AtomicU32, u32)> {
    let words = chunk(address)?.load(Ordering::Acquire);
    if words.is_null() {
        return None;
    }
    let index = (address >> GRANULE_BITS) % (WORDS << WORD_BITS);
    // SAFETY: a chunk has `WORDS` words and is never unmapped, and `index >> WORD_BITS` is below
    // `WORDS`.
    Some((
        unsafe { &*words.add(index >> WORD_BITS) },
        1 << (index % (1 << WORD_BITS)),
    ))
}

/// Stores a new mapping at `place`. Unmaps it if another thread was first.
fn publish<T>(place: &AtomicPtr<T>, fresh: *mut T, length: usize) {
    // Release: pairs with the acquire of threads that look the mapping up, so they see its zeros.
    // On aarch64, the passage of free needs no acquire, because its loads depend on the loaded
    // address.
    let first = place.compare_exchange(null_mut(), fresh, Ordering::Release, Ordering::Relaxed);
    if first.is_err() {
        // SAFETY: every caller has just mapped `fresh` with this length, and no other thread has
        // seen it.
        unsafe { kernel::unmap(fresh.cast(), length) };
    }
}

/// Maps zeros that take no memory until they are written. Returns `None` if the mapping fails, or
/// system calls may be forbidden.
fn map(length: usize) -> Option<*mut c_void> {
    let flags = system::MAP_PRIVATE | system::MAP_ANONYMOUS | system::MAP_NORESERVE;
    if is_sandboxed() {
        return None;
    }
    let address = kernel::map(length, flags, -1);
    if address.is_null() {
        return None;
    }
    // SAFETY: the memory was just mapped, and its contents do not depend on the size of its pages.
    unsafe { kernel::advise(address, length, system::MADV_NOHUGEPAGE) };
    Some(address)
}
