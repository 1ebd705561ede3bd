//! Bins: groups of slabs of one class, each under one lock.
//!
//! Each shard has a bin for each small class, which several threads may share. All threads share
//! one bin for each larger class. A bin hands out blocks of its active slab. When that slab has no
//! free block left, the most recently listed partial slab becomes active, or else an empty slab.

use core::ops::{Deref, DerefMut};
use core::ptr::{NonNull, from_ref};

use heapdrome_pages::{Guard, Lock};

use crate::size_class::SizeClass;
use crate::slabs::partial::Slabs;
use crate::slabs::partial::held::{Detached, LockedSlab};
use crate::slabs::slab::{Owner, SlabRef};

/// Group of slabs of one class. Bins are never freed.
#[derive(Debug)]
pub struct Bin(pub(super) Lock<Slabs>);

/// Bin, and the class of its blocks.
#[derive(Clone, Copy, Debug)]
pub struct ClassBin<'a> {
    pub(super) bin: &'a Bin,
    pub(super) class: SizeClass,
}

impl ClassBin<'_> {
    /// Returns the class of the blocks.
    #[must_use]
    pub const fn class(self) -> SizeClass {
        self.class
    }
}

impl PartialEq for ClassBin<'_> {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self.bin, other.bin)
    }
}

impl<'a> Deref for ClassBin<'a> {
    type Target = Bin;

    fn deref(&self) -> &'a Bin {
        self.bin
    }
}

impl Bin {
    /// Creates a bin without slabs.
    #[must_use]
    pub const fn new() -> Self {
        Self(Lock::new(Slabs::new()))
    }

    /// Locks the bin.
    #[inline]
    pub fn lock(&self) -> LockedBin<'_> {
        LockedBin {
            bin: self,
            slabs: self.0.lock(),
        }
    }

    /// Locks the bin, unless another thread holds the lock.
    #[inline]
    pub fn try_lock(&self) -> Option<LockedBin<'_>> {
        let slabs = self.0.try_lock()?;
        Some(LockedBin { bin: self, slabs })
    }

    fn as_owner(&self) -> *mut Owner {
        from_ref(self).cast_mut().cast()
    }
}

impl SlabRef {
    /// Returns the bin of the slab; `None` for a descriptor that never was a slab. The slab may
    /// move to another bin unless the caller holds the bin's lock.
    #[inline]
    pub(super) fn bin<'a>(self) -> Option<&'a Bin> {
        // SAFETY: every owner is a bin, because only `LockedBin` writes owners. Bins are never
        // freed.
        Some(unsafe { NonNull::new(self.owner())?.cast().as_ref() })
    }
}

/// Bin whose lock is held.
#[derive(Debug)]
pub struct LockedBin<'a> {
    bin: &'a Bin,
    slabs: Guard<'a, Slabs>,
}

impl Deref for LockedBin<'_> {
    type Target = Slabs;

    fn deref(&self) -> &Slabs {
        &self.slabs
    }
}

impl DerefMut for LockedBin<'_> {
    fn deref_mut(&mut self) -> &mut Slabs {
        &mut self.slabs
    }
}

impl LockedBin<'_> {
    /// Returns access to a slab of this bin; `None` for a slab of another bin. While the lock is
    /// held, the result stays valid.
    #[inline]
    pub(super) fn find(&self, slab: SlabRef) -> Option<LockedSlab<'_>> {
        core::ptr::eq(slab.owner(), self.bin.as_owner()).then(|| self.locked(slab))
    }

    /// Returns whether `bin` is the locked bin.
    pub(super) fn is(&self, bin: &Bin) -> bool {
        core::ptr::eq(self.bin, bin)
    }

    /// Adds a slab of the bin's class as the active slab. The bin must not have an active slab. If
    /// the slab comes from another bin, the caller still holds that bin's lock, so that a thread
    /// which frees one of the slab's blocks waits for one of the two locks.
    pub(super) fn add(&mut self, slab: Detached) {
        debug_assert!(self.active.is_none());
        slab.slab().set_owner(self.bin.as_owner());
        self.slabs.slabs += 1;
        self.slabs.activate(slab.handle());
    }
}

impl Default for Bin {
    fn default() -> Self {
        Self::new()
    }
}
