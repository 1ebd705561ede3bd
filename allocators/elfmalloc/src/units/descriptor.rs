//! Descriptors: one record for each unit of an arena, stored out of band.
//!
//! This layer uses only the head of a descriptor, which describes the run that begins at the unit.
//! The code that uses the run defines the rest.

use core::cell::Cell;
use core::ops::Deref;
use core::ptr::NonNull;

use crate::size_class::SizeClass;
use crate::units::amount::Units;

/// Number of bytes of a descriptor.
pub const DESCRIPTOR: usize = 128;

/// Description of the run that begins at a unit.
///
/// The head changes only while the program has no block in the run, or when the owner of a large
/// block resizes it. So the owner of a block may read it without a lock.
#[derive(Debug)]
#[repr(C)]
pub struct Head {
    /// First byte of the run.
    pub base: Cell<*mut u8>,
    units: Cell<u32>,
    /// Number of units between the first unit of the slab and this unit; zero outside slabs.
    pub distance: Cell<u16>,
    /// Class of the blocks.
    pub class: Cell<SizeClass>,
}

impl Head {
    /// Returns the first byte of the last run that began at this unit; null if none did.
    #[inline]
    pub fn base(&self) -> *mut u8 {
        self.base.get()
    }

    /// Returns the number of units of the run.
    #[inline]
    pub fn units(&self) -> Units {
        Units::new(self.units.get() as usize)
    }

    /// Sets the number of units of the run.
    pub fn set_units(&self, units: Units) {
        self.units.set(units.count() as u32);
    }

    /// Returns the class of the blocks; [`NONE`](SizeClass::NONE) if no run begins at this unit.
    #[inline]
    pub fn class(&self) -> SizeClass {
        self.class.get()
    }

    /// Records that a run begins at this unit.
    pub fn set(&self, base: NonNull<u8>, units: Units, class: SizeClass) {
        self.base.set(base.as_ptr());
        self.set_units(units);
        self.distance.set(0);
        self.class.set(class);
    }

    /// Records that the unit is free.
    pub fn clear(&self) {
        self.distance.set(0);
        self.class.set(SizeClass::NONE);
    }
}

/// Memory of a descriptor. All-zero memory describes a free unit.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Descriptor {
    head: Head,
    rest: [Cell<u64>; (DESCRIPTOR - size_of::<Head>()) / 8],
}

const _: () = assert!(size_of::<Descriptor>() == DESCRIPTOR);

/// Handle of the descriptor of a committed unit. The descriptor is never freed, even if the unit is
/// released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct DescriptorRef(NonNull<Descriptor>);

impl DescriptorRef {
    /// Creates the handle of a descriptor.
    ///
    /// # Safety
    ///
    /// The pointer refers to a committed descriptor of an arena, and its provenance covers all
    /// descriptors of that arena.
    #[inline]
    pub(super) const unsafe fn new(descriptor: NonNull<Descriptor>) -> Self {
        Self(descriptor)
    }

    /// Returns the memory of the descriptor.
    #[inline]
    pub const fn as_ptr(self) -> NonNull<Descriptor> {
        self.0
    }

    /// Returns the address of the descriptor.
    #[inline]
    pub fn addr(self) -> usize {
        self.0.addr().get()
    }

    /// Returns the descriptor of the first unit of the slab that this unit is part of; outside
    /// slabs, returns this descriptor.
    #[inline]
    pub fn head_of_run(self) -> Self {
        let distance = usize::from(self.distance.get());
        // SAFETY: a distance is 0, or was written when a run began `distance` units earlier in the
        // same arena, so that descriptor exists.
        Self(unsafe { self.0.sub(distance) })
    }

    /// Returns the descriptors of the first `units` units of the run that begins at this unit. The
    /// run has at least that number of units.
    pub fn each(self, units: Units) -> impl Iterator<Item = Self> {
        debug_assert!(units != Units::NONE);
        // SAFETY: a run's units are committed, and so are their descriptors.
        (0..units.count()).map(move |unit| Self(unsafe { self.0.add(unit) }))
    }
}

impl Deref for DescriptorRef {
    type Target = Head;

    #[inline]
    fn deref(&self) -> &Head {
        // SAFETY: the descriptor is committed and never freed. The reference covers only its head.
        unsafe { &(*self.0.as_ptr()).head }
    }
}
