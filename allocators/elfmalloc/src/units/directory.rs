//! Where the arenas are, for threads that do not hold the pool's lock.

use heapdrome_pages::atomic::{
    AtomicPtr, AtomicU8, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

use crate::size_class::UNIT_SHIFT;
use crate::slabs::slab::Slab;
use crate::units::arena::{Arena, GRAIN, MOST};

/// Where an arena is, for those that do not hold the pool's lock.
#[derive(Debug)]
struct Extent {
    base: AtomicUsize,
    bytes: AtomicUsize,
    slabs: AtomicPtr<Slab>,
    states: AtomicPtr<u8>,
}

impl Extent {
    /// Distance of `address` from the start, if it lies in the committed part. The address need not be that of a
    /// block: it may never have been one.
    #[inline(always)]
    fn offset(&self, address: usize) -> Option<usize> {
        // Acquire: pairs with the releases in `add` and `extend`: who sees bytes sees where they are, and
        // that they are described.
        let bytes = self.bytes.load(Acquire);
        let offset = address.wrapping_sub(self.base.load(Relaxed));
        (offset < bytes).then_some(offset)
    }
}

/// Where the arenas are: finds descriptors without a lock.
#[derive(Debug)]
pub struct Directory {
    extents: [Extent; MOST],
    count: AtomicUsize,
}

impl Directory {
    /// No arenas.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            extents: [const {
                Extent {
                    base: AtomicUsize::new(0),
                    bytes: AtomicUsize::new(0),
                    slabs: AtomicPtr::new(core::ptr::null_mut()),
                    states: AtomicPtr::new(core::ptr::null_mut()),
                }
            }; MOST],
            count: AtomicUsize::new(0),
        }
    }

    /// Adds the arena with the next number. The caller holds the pool's lock.
    pub fn add(&self, arena: &Arena) {
        let count = self.count.load(Relaxed);
        let extent = &self.extents[count];
        extent.base.store(arena.base.addr(), Relaxed);
        extent.slabs.store(arena.slabs, Relaxed);
        extent.states.store(arena.states, Relaxed);
        // Release: pairs with the acquire in `Extent::offset`.
        extent.bytes.store(arena.committed << UNIT_SHIFT, Release);
        // Release: pairs with the acquire in `slab_of_other`.
        self.count.store(count + 1, Release);
    }

    /// Notes how much of arena `index` is committed now. The caller holds the pool's lock.
    pub fn extend(&self, index: usize, arena: &Arena) {
        // Release: as in `add`.
        self.extents[index]
            .bytes
            .store(arena.committed << UNIT_SHIFT, Release);
    }

    /// The descriptor of the slab or run that holds `address`; null where no arena is there. An
    /// address in an unused unit has a descriptor of class [`NONE`](crate::SizeClass::NONE).
    ///
    #[inline]
    pub fn slab_of(&self, address: usize) -> *mut Slab {
        let first = &self.extents[0];
        if let Some(offset) = first.offset(address) {
            // SAFETY: the unit is committed, and so is its descriptor.
            return unsafe { head(first.slabs.load(Relaxed).add(offset >> UNIT_SHIFT)) };
        }
        self.slab_of_other(address)
    }

    /// The state of the block that begins at `address`; null where no arena with states is there.
    #[inline(always)]
    #[must_use]
    pub fn state_of(&self, address: usize) -> *const AtomicU8 {
        let first = &self.extents[0];
        if let Some(offset) = first.offset(address) {
            let states = first.states.load(Relaxed);
            if !states.is_null() {
                // SAFETY: the unit is committed, and so are its states.
                return unsafe { states.add(offset / GRAIN) }.cast();
            }
        }
        self.state_of_other(address)
    }

    #[cold]
    fn state_of_other(&self, address: usize) -> *const AtomicU8 {
        // Acquire: pairs with the release in `add`.
        for extent in &self.extents[..self.count.load(Acquire)] {
            let states = extent.states.load(Relaxed);
            if let Some(offset) = extent.offset(address)
                && !states.is_null()
            {
                // SAFETY: as above.
                return unsafe { states.add(offset / GRAIN) }.cast();
            }
        }
        core::ptr::null()
    }

    #[cold]
    fn slab_of_other(&self, address: usize) -> *mut Slab {
        // Acquire: pairs with the release in `add`.
        for extent in &self.extents[..self.count.load(Acquire)] {
            if let Some(offset) = extent.offset(address) {
                // SAFETY: as above.
                return unsafe { head(extent.slabs.load(Relaxed).add(offset >> UNIT_SHIFT)) };
            }
        }
        core::ptr::null_mut()
    }
}

impl Default for Directory {
    fn default() -> Self {
        Self::new()
    }
}

/// # Safety
///
/// `slab` is a committed descriptor.
#[inline]
unsafe fn head(slab: *mut Slab) -> *mut Slab {
    // SAFETY: the distance never leads out of the arena's descriptors.
    unsafe { slab.sub((*slab).head_distance as usize) }
}
