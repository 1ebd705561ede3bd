//! Descriptors: one record for each unit of an arena. They lie out of band.
//!
//! This layer uses the head of a descriptor, which describes the run of units that begins there.
//! The rest belongs to the code that uses the run.

use core::cell::Cell;
use core::ops::Deref;
use core::ptr::NonNull;

use crate::size_class::SizeClass;
use crate::units::amount::Units;

/// Bytes of a descriptor.
pub const DESCRIPTOR: usize = 128;

/// Description of the run that begins at a unit.
///
/// It changes only while the program has no block of the run, so the owner of a block reads it
/// without a lock.
#[derive(Debug)]
#[repr(C)]
pub struct Head {
    /// First byte of the run.
    pub base: Cell<*mut u8>,
    units: Cell<u32>,
    /// Number of units between the first unit of the run and this one.
    pub distance: Cell<u16>,
    /// Class of the blocks.
    pub class: Cell<SizeClass>,
}

impl Head {
    /// Returns the first byte of the run, if one began here.
    #[inline]
    pub fn base(&self) -> *mut u8 {
        self.base.get()
    }

    /// Returns the number of units of the run.
    #[inline]
    pub fn units(&self) -> Units {
        Units::new(self.units.get() as usize)
    }

    /// Makes the run longer or shorter.
    pub fn set_units(&self, units: Units) {
        self.units.set(units.count() as u32);
    }

    /// Returns the class of the blocks; [`NONE`](SizeClass::NONE) while the unit is free.
    #[inline]
    pub fn class(&self) -> SizeClass {
        self.class.get()
    }

    /// Makes this the head of a run.
    pub fn set(&self, base: NonNull<u8>, units: Units, class: SizeClass) {
        self.base.set(base.as_ptr());
        self.set_units(units);
        self.distance.set(0);
        self.class.set(class);
    }

    /// Notes that no run is here.
    pub fn clear(&self) {
        self.distance.set(0);
        self.class.set(SizeClass::NONE);
    }
}

/// Memory of a descriptor. All zeros describe a free unit.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Descriptor {
    head: Head,
    rest: [Cell<u64>; (DESCRIPTOR - size_of::<Head>()) / 8],
}

const _: () = assert!(size_of::<Descriptor>() == DESCRIPTOR);

/// Descriptor of a unit that was committed. Its memory stays, even after the unit is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct DescriptorRef(NonNull<Descriptor>);

impl DescriptorRef {
    /// Creates the handle of a descriptor.
    ///
    /// # Safety
    ///
    /// The pointer leads to a committed descriptor of an arena, and its provenance covers all
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

    /// Returns the descriptor of the first unit of the run that this unit lies in.
    #[inline]
    pub fn head_of_run(self) -> Self {
        let distance = usize::from(self.distance.get());
        // SAFETY: the code that starts a run writes the distances of its units, so none leads out
        // of the arena's descriptors.
        Self(unsafe { self.0.sub(distance) })
    }

    /// Returns the descriptors of the first `units` units of the run that begins here, which has at
    /// least as many.
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
        // SAFETY: the descriptor is committed and stays. No reference to its rest is created.
        unsafe { &(*self.0.as_ptr()).head }
    }
}
