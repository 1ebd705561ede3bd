//! The class map: for every unit of the arena, the class of the blocks there, in one byte.
//!
//! What was never written reads as class 0, which no slab serves. Addresses outside of the arena
//! have class 0, too: null, the stack, and any foreign pointer. Where there is no memory for the
//! map, every address has class 0, and `free` finds the class through the directory of arenas, on
//! its slow path.

use core::ptr::{NonNull, null_mut};
use heapdrome_pages::atomic::{
    AtomicPtr, AtomicU8, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

use heapdrome_pages::{Access, Advice, Pages};

use crate::size_class::{SizeClass, UNIT_SHIFT};
use crate::units::amount::Units;

/// Base of the arena while there is none. Every address of a program lies outside.
const NOWHERE: usize = 1 << (usize::BITS - 1);

/// The map. All bytes are written before a block of theirs is handed out, so that whoever has the
/// block sees them.
#[derive(Debug)]
#[repr(align(128))]
pub struct ClassMap {
    /// Where the arena begins.
    base: AtomicUsize,
    /// Number of its units.
    units: AtomicUsize,
    bytes: AtomicPtr<AtomicU8>,
}

impl ClassMap {
    /// A map in which every address has no class.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            base: AtomicUsize::new(NOWHERE),
            units: AtomicUsize::new(0),
            bytes: AtomicPtr::new(null_mut()),
        }
    }

    /// Makes the map for `size` bytes of address space from `base` on: no slab may lie elsewhere
    /// from then on. False where there is no memory for it: every address keeps class 0.
    pub fn start(&self, pages: &impl Pages, base: NonNull<u8>, size: usize) -> bool {
        let units = size >> UNIT_SHIFT;
        let bytes = units.next_multiple_of(pages.page_size());
        let Some(map) = pages.reserve(bytes, 4096, Access::ReadWrite) else {
            return false;
        };
        // SAFETY: the range was just reserved.
        unsafe { pages.advise(map, bytes, Advice::NoHugePages) };
        self.bytes.store(map.as_ptr().cast(), Relaxed);
        self.units.store(units, Relaxed);
        // Release: pairs with the acquire in `place`: who sees where the arena begins sees the map.
        self.base.store(base.addr().get(), Release);
        true
    }

    /// The map as it is now.
    #[inline(always)]
    pub(crate) fn window(&self) -> Window {
        // Acquire: pairs with the release in `start`. Before, every address lies outside of what
        // `units` may say.
        let base = self.base.load(Acquire);
        Window {
            base,
            units: self.units.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
        }
    }

    /// The class of the blocks at `address`.
    #[inline(always)]
    pub fn get(&self, address: usize) -> SizeClass {
        self.window().find(address).unwrap_or(SizeClass::NONE)
    }

    /// Sets the class for `units` from `base` on. Units outside of the arena that the map was
    /// started for have none.
    pub fn set(&self, base: NonNull<u8>, units: Units, class: SizeClass) {
        let window = self.window();
        let Some(first) = window.place(base.addr().get()) else {
            return;
        };
        let end = window.units.min(first + units.count());
        for place in first..end {
            // SAFETY: the map has a byte for every unit of the arena. Relaxed: see the type.
            unsafe { (*window.bytes.add(place)).store(class.number() as u8, Relaxed) };
        }
    }
}

/// Copy of the map's place for the fast path. Every thread has one: the compiler uses these words
/// as operands, which it does not do with atomics.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    base: usize,
    units: usize,
    bytes: *const AtomicU8,
}

impl Window {
    /// Window before there is a map: every address lies outside.
    pub(crate) const NONE: Self = Self {
        base: NOWHERE,
        units: 0,
        bytes: core::ptr::null(),
    };

    /// The place of an address in the map; `None` outside of the arena.
    #[inline(always)]
    fn place(self, address: usize) -> Option<usize> {
        let place = address.wrapping_sub(self.base) >> UNIT_SHIFT;
        (place < self.units).then_some(place)
    }

    /// The class of the blocks at `address`; `None` outside of the arena.
    #[inline(always)]
    pub(crate) fn find(self, address: usize) -> Option<SizeClass> {
        let place = self.place(address)?;
        // SAFETY: the map has a byte for every unit.
        let byte = unsafe { load_byte(self.bytes, place) };
        Some(SizeClass::from_number(byte as u8))
    }
}

/// Loads a byte, relaxed. As an instruction of our own: the compiler extends an atomic byte to a
/// word by a second one.
///
/// # Safety
///
/// The byte at that place is one that may be read.
#[inline(always)]
unsafe fn load_byte(bytes: *const AtomicU8, place: usize) -> usize {
    #[cfg(all(target_arch = "x86_64", not(any(miri, modelled))))]
    {
        let value: usize;
        // SAFETY: the caller's promise; an aligned load of a byte is atomic.
        unsafe {
            core::arch::asm!("movzx {0:e}, byte ptr [{1} + {2}]", lateout(reg) value, in(reg) bytes,
                in(reg) place, options(readonly, nostack, preserves_flags));
            core::hint::assert_unchecked(value <= 0xff);
        }
        value
    }
    #[cfg(not(all(target_arch = "x86_64", not(any(miri, modelled)))))]
    // SAFETY: the caller's promise.
    usize::from(unsafe { (*bytes.add(place)).load(Relaxed) })
}

impl Default for ClassMap {
    fn default() -> Self {
        Self::new()
    }
}
