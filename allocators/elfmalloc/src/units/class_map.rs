//! Class map: one byte for every unit of the arena, with the class of its blocks.
//!
//! Bytes that were never written read as class 0, [`SizeClass::NONE`]. Addresses outside the arena
//! also have class 0: null, the stack, and every foreign pointer. If out of memory for the map,
//! every address has class 0. The slow path of `free` then finds the class in the directory of
//! arenas.

use core::ptr::{NonNull, null_mut};
use heapdrome_pages::atomic::{
    AtomicPtr, AtomicU8, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

use heapdrome_pages::{Access, Advice, Pages};

use crate::size_class::{SizeClass, UNIT_SHIFT};
use crate::units::amount::Units;

/// Map from units of the arena to classes. The byte of a block's unit is written before the block
/// is handed out, so every thread with a pointer to the block sees that byte.
#[derive(Debug)]
#[repr(align(128))]
pub struct ClassMap {
    /// Address of the arena.
    base: AtomicUsize,
    /// Number of units of the arena.
    units: AtomicUsize,
    bytes: AtomicPtr<AtomicU8>,
}

impl ClassMap {
    /// Creates a map in which no address has a class.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            base: AtomicUsize::new(0),
            units: AtomicUsize::new(0),
            bytes: AtomicPtr::new(null_mut()),
        }
    }

    /// Creates the map for an arena of `size` bytes at `base`. Returns false if out of memory; then
    /// every address keeps class 0.
    pub fn start(&self, pages: &impl Pages, base: NonNull<u8>, size: usize) -> bool {
        let units = size >> UNIT_SHIFT;
        let bytes = units.next_multiple_of(pages.page_size());
        let Some(map) = pages.reserve(bytes, 4096, Access::ReadWrite) else {
            return false;
        };
        // SAFETY: the range was just reserved, and no other code uses it yet.
        unsafe { pages.advise(map, bytes, Advice::NoHugePages) };
        self.bytes.store(map.as_ptr().cast(), Relaxed);
        self.base.store(base.addr().get(), Relaxed);
        // Release: pairs with the acquire in `window`. A thread that sees the number of units also
        // sees the base and the map.
        self.units.store(units, Release);
        true
    }

    /// Returns a copy of the map's current location.
    #[inline(always)]
    pub(crate) fn window(&self) -> Window {
        // Acquire: pairs with the release in `start`. Before `start` there are no units.
        let units = self.units.load(Acquire);
        Window {
            base: self.base.load(Relaxed),
            units,
            bytes: self.bytes.load(Relaxed),
        }
    }

    /// Returns the class of the blocks at `address`.
    #[inline(always)]
    pub fn get(&self, address: usize) -> SizeClass {
        self.window().find(address).unwrap_or(SizeClass::NONE)
    }

    /// Sets the class of `units` consecutive units, the first of which begins at `base`. Ignores
    /// units outside the map's arena.
    pub fn set(&self, base: NonNull<u8>, units: Units, class: SizeClass) {
        let window = self.window();
        let Some(first) = window.place(base.addr().get()) else {
            return;
        };
        let end = window.units.min(first + units.count());
        for place in first..end {
            // SAFETY: the map has a byte for every unit of the arena. Relaxed: the handover of a
            // block of these units, which comes later, orders this store for the thread that gets
            // the block.
            unsafe { (*window.bytes.add(place)).store(class.number() as u8, Relaxed) };
        }
    }
}

/// Copy of the map's location for the fast path of one thread. Plain words, because compilers do
/// not fold atomic loads into other instructions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    base: usize,
    units: usize,
    bytes: *const AtomicU8,
}

impl Window {
    /// Window before the map exists: every address lies outside.
    pub(crate) const NONE: Self = Self {
        base: 0,
        units: 0,
        bytes: core::ptr::null(),
    };

    /// Returns the index of an address in the map; `None` outside the arena.
    #[inline(always)]
    fn place(self, address: usize) -> Option<usize> {
        let place = address.wrapping_sub(self.base) >> UNIT_SHIFT;
        (place < self.units).then_some(place)
    }

    /// Returns the class of the blocks at `address`; `None` outside the arena.
    #[inline(always)]
    pub(crate) fn find(self, address: usize) -> Option<SizeClass> {
        let place = self.place(address)?;
        // SAFETY: `place` is the index of a unit of the arena, and the map has a byte for each.
        // Every byte is zero or the number of a class that `ClassMap::set` stored.
        Some(unsafe { SizeClass::from_number_unchecked(load_byte(self.bytes, place) as u8) })
    }
}

/// Loads a byte, relaxed. Written in assembly because compilers extend an atomic byte to a word
/// with a second instruction.
///
/// # Safety
///
/// The byte at `place` may be read.
#[inline(always)]
unsafe fn load_byte(bytes: *const AtomicU8, place: usize) -> usize {
    #[cfg(all(target_arch = "x86_64", not(any(miri, modelled))))]
    {
        let value: usize;
        // SAFETY: the byte may be read, by this function's contract; an aligned load of a byte is
        // atomic. `movzx` clears the upper bits, so the value is at most 0xff.
        unsafe {
            core::arch::asm!("movzx {0:e}, byte ptr [{1} + {2}]", lateout(reg) value, in(reg) bytes,
                in(reg) place, options(readonly, nostack, preserves_flags));
            core::hint::assert_unchecked(value <= 0xff);
        }
        value
    }
    #[cfg(not(all(target_arch = "x86_64", not(any(miri, modelled)))))]
    // SAFETY: the byte may be read, by this function's contract.
    usize::from(unsafe { (*bytes.add(place)).load(Relaxed) })
}

impl Default for ClassMap {
    fn default() -> Self {
        Self::new()
    }
}
