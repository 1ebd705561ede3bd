//! Slabs that this thread alone uses: of a bin whose lock is held, or in no bin.

use core::marker::PhantomData;
use core::ops::Deref;

use super::Slabs;
use crate::size_class::SizeClass;
use crate::slabs::slab::{Slab, SlabRef};

/// A slab whose bin's lock is held as long as this lives, or one that is in no bin. Only code of
/// this folder makes them.
#[derive(Clone, Copy, Debug)]
pub(in crate::slabs) struct LockedSlab<'a>(SlabRef, PhantomData<&'a Slabs>);

impl LockedSlab<'_> {
    /// Handle of the slab.
    pub(super) const fn handle(self) -> SlabRef {
        self.0
    }
}

impl Deref for LockedSlab<'_> {
    type Target = Slab;

    #[inline]
    fn deref(&self) -> &Slab {
        // SAFETY: the descriptor stays, and is a slab. No other thread uses it: the bin's lock is
        // held, or the slab is in no bin and this thread's.
        unsafe { self.0.as_ptr().as_ref() }
    }
}

/// A slab of the bin whose content calls, or one that is in no bin and this thread's.
#[inline]
pub(super) fn locked<'a>(slab: SlabRef) -> LockedSlab<'a> {
    LockedSlab(slab, PhantomData)
}

/// A slab that is in no bin. The holder of this value owns it.
#[derive(Debug)]
#[must_use]
pub(in crate::slabs) struct Detached(SlabRef);

impl Detached {
    /// A new slab, with the bitmap `external` if its descriptor has no room for one.
    ///
    /// # Safety
    ///
    /// As for [`Slab::start`], and no other code has the slab.
    pub(in crate::slabs) unsafe fn start(
        slab: SlabRef,
        class: SizeClass,
        external: *mut u64,
    ) -> Self {
        // SAFETY: the conditions are the same.
        unsafe { locked(slab).start(class, external) };
        Self(slab)
    }

    /// The slab.
    pub(in crate::slabs) fn slab(&self) -> LockedSlab<'_> {
        locked(self.0)
    }

    /// Handle of the slab.
    pub(in crate::slabs) const fn handle(&self) -> SlabRef {
        self.0
    }
}

/// A slab that has just left its bin.
pub(super) const fn detached(slab: SlabRef) -> Detached {
    Detached(slab)
}

/// Slabs that are in no bin, linked by `next`.
#[derive(Debug)]
#[must_use]
pub(in crate::slabs) struct DetachedList(Option<SlabRef>);

impl DetachedList {
    /// None.
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
