//! Slabs to which the calling thread has exclusive access: it holds the lock of their bin, or they
//! are in no bin.

use core::marker::PhantomData;
use core::ops::Deref;

use super::Slabs;
use crate::size_class::SizeClass;
use crate::slabs::slab::{Slab, SlabRef};

/// Slab to which the calling thread has exclusive access while this value lives: it holds the lock
/// of the slab's bin, or the slab is in no bin. Only `partial` and its child modules create these
/// values.
#[derive(Clone, Copy, Debug)]
pub(in crate::slabs) struct LockedSlab<'a>(SlabRef, PhantomData<&'a Slabs>);

impl LockedSlab<'_> {
    pub(super) const fn handle(self) -> SlabRef {
        self.0
    }
}

impl Deref for LockedSlab<'_> {
    type Target = Slab;

    #[inline]
    fn deref(&self) -> &Slab {
        // SAFETY: the descriptor is never freed, and is a slab. No other thread uses it: this
        // thread holds the bin's lock, or the slab is in no bin and belongs to this thread.
        unsafe { self.0.as_ptr().as_ref() }
    }
}

/// Returns access to a slab. The caller holds the lock of its bin, or the slab is in no bin and
/// belongs to the calling thread.
#[inline]
pub(super) fn locked<'a>(slab: SlabRef) -> LockedSlab<'a> {
    LockedSlab(slab, PhantomData)
}

/// Slab that is in no bin. The holder of this value owns it.
#[derive(Debug)]
#[must_use]
pub(in crate::slabs) struct Detached(SlabRef);

impl Detached {
    /// Creates a slab. `external` is its bitmap, or null if the descriptor has room for the bitmap.
    ///
    /// # Safety
    ///
    /// The conditions of [`Slab::start`] hold, and no other code uses the slab.
    pub(in crate::slabs) unsafe fn start(
        slab: SlabRef,
        class: SizeClass,
        external: *mut u64,
    ) -> Self {
        // SAFETY: by this function's contract, the conditions of `Slab::start` hold.
        unsafe { locked(slab).start(class, external) };
        Self(slab)
    }

    /// Returns access to the slab.
    pub(in crate::slabs) fn slab(&self) -> LockedSlab<'_> {
        locked(self.0)
    }

    pub(in crate::slabs) const fn handle(&self) -> SlabRef {
        self.0
    }
}

/// Wraps a slab that has just left its bin.
pub(super) const fn detached(slab: SlabRef) -> Detached {
    Detached(slab)
}

/// List of slabs that are in no bin, linked by `next`.
#[derive(Debug)]
#[must_use]
pub(in crate::slabs) struct DetachedList(Option<SlabRef>);

impl DetachedList {
    pub(in crate::slabs) const NONE: Self = Self(None);

    pub(in crate::slabs) fn push(&mut self, slab: Detached) {
        slab.slab().next.set(self.0);
        self.0 = Some(slab.0);
    }
}

impl Iterator for DetachedList {
    type Item = Detached;

    fn next(&mut self) -> Option<Detached> {
        let slab = self.0?;
        self.0 = locked(slab).next.get();
        Some(Detached(slab))
    }
}
