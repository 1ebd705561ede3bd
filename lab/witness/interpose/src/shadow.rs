//! Keeps the size and the thread of each live block in a table outside the heap.
//!
//! Each 8 bytes of address space have a cell of 4 bytes. If a live block begins at these bytes,
//! their cell contains its size and the thread that requested it, otherwise 0. A chunk of cells is
//! mapped when a block first begins in it. There is no lock, because a cell belongs to the owner of
//! the block.
//!
//! [`crate::marks`] has only one bit for each recorded block, because the collector knows the
//! block's size. The mode that follows blocks has no collector, so this table contains the size of
//! every live block.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::kernel;
use crate::record;
use crate::system;

/// Binary logarithm of the number of bytes of address space that share a cell. Allocators align
/// blocks to at least 8 bytes.
const GRANULE_BITS: u32 = 3;

/// Binary logarithm of the number of bytes of address space that share a chunk.
const CHUNK_BITS: u32 = 26;

/// Number of bits of a program's addresses.
const ADDRESS_BITS: u32 = 48;

const CHUNKS: usize = 1 << (ADDRESS_BITS - CHUNK_BITS);
const CELLS: usize = 1 << (CHUNK_BITS - GRANULE_BITS);

/// The chunks, indexed by address; null where there is none. The directory itself is null before
/// the first block.
static DIRECTORY: AtomicPtr<AtomicPtr<AtomicU32>> = AtomicPtr::new(null_mut());

/// Number of bits of a size that a cell contains. The other bits contain an exponent and the
/// thread.
const MANTISSA_BITS: u32 = 19;
const EXPONENT_BITS: u32 = 5;
const THREAD_SHIFT: u32 = MANTISSA_BITS + EXPONENT_BITS;

/// Limit below which a size is stored exactly. Such a size has no exponent, and is stored plus one,
/// so that the cell of a block is never 0.
const EXACT: u64 = (1 << MANTISSA_BITS) - 1;

/// A live block.
#[derive(Clone, Copy)]
pub struct Block {
    /// Requested size. Above 512 KiB it is rounded down by less than 1/200,000.
    pub size: u64,
    /// Lowest 8 bits of the number of the thread that requested the block.
    pub thread: u8,
}

impl Block {
    fn cell(self) -> u32 {
        let length = u64::BITS - self.size.leading_zeros();
        let (exponent, mantissa) = if self.size < EXACT {
            (0, self.size + 1)
        } else {
            let exponent = length.saturating_sub(MANTISSA_BITS).max(1);
            (exponent, self.size >> exponent)
        };
        u32::from(self.thread) << THREAD_SHIFT | exponent << MANTISSA_BITS | mantissa as u32
    }

    fn of(cell: u32) -> Option<Self> {
        let mantissa = u64::from(cell & ((1 << MANTISSA_BITS) - 1));
        let exponent = cell >> MANTISSA_BITS & ((1 << EXPONENT_BITS) - 1);
        (cell != 0).then(|| Self {
            size: match exponent {
                0 => mantissa - 1,
                _ => mantissa << exponent,
            },
            thread: (cell >> THREAD_SHIFT) as u8,
        })
    }
}

/// Records that a block begins at `address`. Returns the change of live bytes; `None` if the table
/// has no room. If a block was already recorded there, it was freed by a call that this library
/// does not see.
pub fn put(address: usize, block: Block) -> Option<i64> {
    let cell = block.cell();
    let before = cell_of(address, true)?.swap(cell, Ordering::Relaxed);
    let size = |cell| Block::of(cell).map_or(0, |block| block.size as i64);
    Some(size(cell) - size(before))
}

/// Removes the block that begins at `address` from the table, and returns it; `None` if the table
/// does not contain it.
pub fn take(address: usize) -> Option<Block> {
    Block::of(cell_of(address, false)?.swap(0, Ordering::Relaxed))
}

fn cell_of(address: usize, make: bool) -> Option<&'static AtomicU32> {
    if address == 0 || address >> ADDRESS_BITS != 0 {
        return None;
    }
    let directory = or_mapped(&DIRECTORY, CHUNKS * size_of::<usize>(), make)?;
    // SAFETY: the directory has an entry for every address below the limit, and is never unmapped.
    let chunk = unsafe { &*directory.add(address >> CHUNK_BITS) };
    let cells = or_mapped(chunk, CELLS * size_of::<AtomicU32>(), make)?;
    // SAFETY: a chunk has a cell for every granule, and is never unmapped.
    Some(unsafe { &*cells.add(address >> GRANULE_BITS & (CELLS - 1)) })
}

/// Returns the table at `place`. If there is none, maps a table of zeros if `make` is set, and
/// otherwise returns `None`. Also returns `None` if mapping fails.
fn or_mapped<T>(place: &AtomicPtr<T>, length: usize, make: bool) -> Option<*mut T> {
    let known = place.load(Ordering::Acquire);
    if !known.is_null() || !make {
        return (!known.is_null()).then_some(known);
    }
    let fresh = map(length)?.cast::<T>();
    match place.compare_exchange(null_mut(), fresh, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => Some(fresh),
        Err(first) => {
            // SAFETY: `fresh` was just mapped with this length, and no other thread has seen it.
            unsafe { kernel::unmap(fresh.cast(), length) };
            record::add_own_call(|own| &own.munmap);
            Some(first)
        }
    }
}

/// Maps zeros that take no memory until they are written. The mapping takes no huge pages, so that
/// the huge pages of the process are those of the program.
fn map(length: usize) -> Option<*mut core::ffi::c_void> {
    let flags = system::MAP_PRIVATE | system::MAP_ANONYMOUS | system::MAP_NORESERVE;
    let address = kernel::map(length, flags, -1);
    record::add_own_call(|own| &own.mmap);
    if address.is_null() {
        return None;
    }
    // SAFETY: the memory was just mapped, and its contents do not depend on the size of its pages.
    unsafe { kernel::advise(address, length, system::MADV_NOHUGEPAGE) };
    record::add_own_call(|own| &own.madvise);
    Some(address)
}
