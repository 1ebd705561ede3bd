//! Directory: the locations of all arenas, for threads that do not hold the pool's lock.

use core::ptr::NonNull;
use heapdrome_pages::atomic::{
    AtomicPtr, AtomicU8, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

use crate::size_class::UNIT_SHIFT;
use crate::units::arena::{Arena, GRAIN, MOST};
use crate::units::descriptor::{Descriptor, DescriptorRef};

/// Location of an arena, for threads that do not hold the pool's lock.
#[derive(Debug)]
struct Extent {
    base: AtomicUsize,
    bytes: AtomicUsize,
    descriptors: AtomicPtr<Descriptor>,
    states: AtomicPtr<u8>,
}

impl Extent {
    /// Returns the offset of `address` in the arena; `None` if it lies outside the committed part.
    /// Accepts any number as address.
    #[inline(always)]
    fn offset(&self, address: usize) -> Option<usize> {
        // Acquire: pairs with the releases in `add` and `extend`. A thread that sees the bytes also
        // sees the base, the descriptors and the states.
        let bytes = self.bytes.load(Acquire);
        let offset = address.wrapping_sub(self.base.load(Relaxed));
        (offset < bytes).then_some(offset)
    }

    /// Returns the descriptor for `address`, as [`Directory::run_of`] defines it; `None` outside
    /// the committed part.
    #[inline(always)]
    fn run_of(&self, address: usize) -> Option<DescriptorRef> {
        let offset = self.offset(address)?;
        // SAFETY: the unit was committed, so its descriptor is committed and stays so. The pointer
        // is not null, and is derived from that of the arena's first descriptor.
        unsafe {
            let unit = self.descriptors.load(Relaxed).add(offset >> UNIT_SHIFT);
            Some(DescriptorRef::new(NonNull::new_unchecked(unit)).head_of_run())
        }
    }

    /// Returns the state byte of `address`; `None` outside the committed part, or if the arena has
    /// no states.
    #[inline(always)]
    fn state_of(&self, address: usize) -> Option<*const AtomicU8> {
        let offset = self.offset(address)?;
        let states = self.states.load(Relaxed);
        // SAFETY: the unit was committed, so its states are committed and stay so.
        (!states.is_null()).then(|| unsafe { states.add(offset / GRAIN) }.cast_const().cast())
    }
}

/// Locations of all arenas. Finds descriptors without a lock.
#[derive(Debug)]
pub struct Directory {
    extents: [Extent; MOST],
    count: AtomicUsize,
}

impl Directory {
    /// Creates a directory without arenas.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            extents: [const {
                Extent {
                    base: AtomicUsize::new(0),
                    bytes: AtomicUsize::new(0),
                    descriptors: AtomicPtr::new(core::ptr::null_mut()),
                    states: AtomicPtr::new(core::ptr::null_mut()),
                }
            }; MOST],
            count: AtomicUsize::new(0),
        }
    }

    /// Adds an arena. The caller holds the pool's lock.
    pub fn add(&self, arena: &Arena) {
        let count = self.count.load(Relaxed);
        let extent = &self.extents[count];
        extent.base.store(arena.base.addr(), Relaxed);
        extent.descriptors.store(arena.descriptors, Relaxed);
        extent.states.store(arena.states, Relaxed);
        // Release: pairs with the acquire in `Extent::offset`.
        extent.bytes.store(arena.committed << UNIT_SHIFT, Release);
        // Release: pairs with the acquires in `run_of_other` and `state_of_other`.
        self.count.store(count + 1, Release);
    }

    /// Publishes the committed size of arena `index`. The caller holds the pool's lock.
    pub fn extend(&self, index: usize, arena: &Arena) {
        // Release: pairs with the acquire in `Extent::offset`.
        self.extents[index]
            .bytes
            .store(arena.committed << UNIT_SHIFT, Release);
    }

    /// Returns the descriptor of the slab that contains `address`, otherwise the descriptor of the
    /// unit at `address`; `None` outside the committed units of all arenas. Unused units, and all
    /// units of a large block except the first, have class [`NONE`](crate::SizeClass::NONE).
    #[inline]
    pub fn run_of(&self, address: usize) -> Option<DescriptorRef> {
        self.extents[0]
            .run_of(address)
            .or_else(|| self.run_of_other(address))
    }

    /// Returns whether the blocks of the arenas have states.
    #[inline]
    #[must_use]
    pub fn has_states(&self) -> bool {
        // Relaxed: the first arena has its states before the first block, and either all arenas
        // have states or none.
        !self.extents[0].states.load(Relaxed).is_null()
    }

    /// Returns the state byte of `address`; null outside the committed units of all arenas, or if
    /// blocks have no states.
    #[inline(always)]
    #[must_use]
    pub fn state_of(&self, address: usize) -> *const AtomicU8 {
        self.extents[0]
            .state_of(address)
            .unwrap_or_else(|| self.state_of_other(address))
    }

    #[cold]
    fn state_of_other(&self, address: usize) -> *const AtomicU8 {
        // Acquire: pairs with the release in `add`.
        let extents = &self.extents[..self.count.load(Acquire)];
        let found = extents.iter().find_map(|extent| extent.state_of(address));
        found.unwrap_or(core::ptr::null())
    }

    #[cold]
    fn run_of_other(&self, address: usize) -> Option<DescriptorRef> {
        // Acquire: pairs with the release in `add`.
        let extents = &self.extents[..self.count.load(Acquire)];
        extents.iter().find_map(|extent| extent.run_of(address))
    }
}

impl Default for Directory {
    fn default() -> Self {
        Self::new()
    }
}
