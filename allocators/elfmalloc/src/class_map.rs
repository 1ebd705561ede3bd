//! The class map: for every 64 KiB of the address space, the class of the blocks there, in one byte.
//!
//! Two gigabytes of address space are reserved for it and only the bytes of arenas are ever written;
//! what was never written reads as class 0, which no slab serves: null, the stack, and any foreign
//! pointer need no test of their own. Where two gigabytes cannot be had, every address has class 0,
//! and `free` finds the class through the directory of arenas, on its slow path.

use core::ptr::NonNull;
use heapdrome_pages::atomic::{
    AtomicPtr, AtomicU8, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

use heapdrome_pages::{Access, Advice, Pages};

use crate::size_class::{SizeClass, UNIT_SHIFT};

/// Bits of a user-space address.
const ADDRESS_BITS: u32 = if cfg!(target_arch = "x86_64") { 47 } else { 48 };
const BYTES: usize = 1 << (ADDRESS_BITS - UNIT_SHIFT);

static NOTHING: AtomicU8 = AtomicU8::new(0);

/// The map. All bytes are written before a block of theirs is handed out, so that whoever has the
/// block sees them.
#[derive(Debug)]
#[repr(align(128))]
pub struct ClassMap {
    bytes: AtomicPtr<AtomicU8>,
    mask: AtomicUsize,
}

impl ClassMap {
    /// A map in which every address has no class.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            bytes: AtomicPtr::new((&raw const NOTHING).cast_mut()),
            mask: AtomicUsize::new(0),
        }
    }

    /// Reserves the map, writable for the `size` bytes of address space from `base` on and nowhere else:
    /// no slab may lie elsewhere from then on. False where that fails: every address keeps class 0.
    pub fn start(&self, pages: &impl Pages, base: NonNull<u8>, size: usize) -> bool {
        let Some(map) = pages.reserve(BYTES, 4096, Access::Read) else {
            return false;
        };
        let page = pages.page_size();
        let first = (base.addr().get() >> UNIT_SHIFT) / page * page;
        let end = ((base.addr().get() + size) >> UNIT_SHIFT).next_multiple_of(page);
        // SAFETY: both indices lie in the reservation, since the arena lies in the address space.
        let writable = unsafe {
            pages.advise(map, BYTES, Advice::NoHugePages);
            pages.protect(map.add(first), end - first, Access::ReadWrite)
        };
        if !writable {
            // SAFETY: nobody uses the reservation yet.
            unsafe { pages.release(map, BYTES) };
            return false;
        }
        self.bytes.store(map.as_ptr().cast(), Relaxed);
        // Release: pairs with the acquire in `get`: who sees the mask sees the map.
        self.mask.store(BYTES - 1, Release);
        true
    }

    /// The class of the blocks at `address`.
    #[inline(always)]
    pub fn get(&self, address: usize) -> SizeClass {
        // Acquire: pairs with the release in `start`.
        let index = (address >> UNIT_SHIFT) & self.mask.load(Acquire);
        // SAFETY: the mask keeps the index within the map, and is zero while there is none.
        let byte = unsafe { (*self.bytes.load(Relaxed).add(index)).load(Relaxed) };
        SizeClass::from_number(byte)
    }

    /// Sets the class for `units` units from `base` on.
    ///
    /// # Safety
    ///
    /// They lie in the arena that the map was started for, if it was.
    pub unsafe fn set(&self, base: NonNull<u8>, units: usize, class: SizeClass) {
        let mask = self.mask.load(Acquire);
        if mask == 0 {
            return;
        }
        let first = (base.addr().get() >> UNIT_SHIFT) & mask;
        for index in first..first + units {
            // SAFETY: the arena's bytes are writable and in the map. Relaxed: see the type.
            unsafe {
                (*self.bytes.load(Relaxed).add(index)).store(class.number() as u8, Relaxed);
            }
        }
    }
}

impl Default for ClassMap {
    fn default() -> Self {
        Self::new()
    }
}
