//! States of blocks, which the hardened variant records out of band.
//!
//! Each unit has one byte of state for each [`GRAIN`] bytes. The state of a live block records its
//! slack: the number of bytes at its end that the program did not request. The state of a freed
//! block records that the block is filled. The state of a block that was never allocated is zero. A
//! byte that belongs to no block of the slab's class may still hold the state of a freed block of
//! an earlier slab.
//!
//! ```text
//!  short block:  | slack |                         1 to 253
//!  long block:   | 255 | 0 | 0 | 0 | slack, 32 bits |
//!  freed:        | 254 |                           a whole word for long blocks
//! ```
//!
//! The state of a short block lies at the block's index in the unit, so that the states of 64
//! blocks of any size share a cache line. Neighbouring units start at different offsets, so that
//! the states of all units do not compete for the same cache sets. The state of a long block lies
//! at the block's offset in the unit, divided by [`GRAIN`].

use core::ptr::NonNull;
use heapdrome_pages::atomic::{AtomicPtr, AtomicU8, AtomicU64, Ordering::Relaxed};
use heapdrome_pages::system::{abort, write_error};

use crate::size_class::{SizeClass, UNIT, UNIT_SHIFT};
use crate::slabs::shape::{SHORT, Shape};
use crate::units::arena::GRAIN;
use crate::units::class_map::ClassMap;
use crate::units::directory::Directory;

/// Maximum slack that one byte can record.
pub(crate) const MOST_SHORT: usize = 253;
/// State of a block that was freed and filled.
const FREED: u8 = 254;
/// First byte of the state of a live long block.
const LONG: u8 = 255;
/// Number of bytes of a unit's states.
const BYTES: usize = UNIT / GRAIN;
/// Difference between the offsets at which two consecutive units start their states: two cache
/// lines.
const STAGGER: usize = 128;
/// Message for a slab whose blocks have no states.
const OTHER_VARIANT: &str =
    "elfmalloc: another variant served this process before the hardened one; use one of them\n";

/// States of one unit: words or bytes, aligned to a cache line.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct UnitStates([AtomicU8; BYTES]);

/// Place where the states of address zero would lie, extrapolated from those of the arena. Null
/// until known; stays null if there are several arenas.
static STATES: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());

/// Returns whether the location of the states is known.
pub(crate) fn are_known() -> bool {
    !STATES.load(Relaxed).is_null()
}

/// Derives the location of the states from a block of a slab, if the arena has states. Has no
/// effect unless the class map covers the block, because only then all slabs lie in one arena.
/// Stores the location only once, because every fast path reads it.
#[cold]
pub(crate) fn find_states(map: &ClassMap, directory: &Directory, block: NonNull<u8>) {
    let address = block.addr().get();
    if are_known() || map.get(address) == SizeClass::NONE {
        return;
    }
    let state = directory.state_of(address).cast_mut().cast::<u8>();
    if !state.is_null() {
        // Relaxed: every thread stores the same value.
        STATES.store(state.wrapping_sub(address / GRAIN), Relaxed);
    }
}

/// Returns the states of the unit that contains `address`, an address in a slab; `None` if the slow
/// path must find them.
#[inline(always)]
fn near(address: usize) -> Option<&'static UnitStates> {
    let states = NonNull::new(STATES.load(Relaxed))?;
    let unit = (address >> UNIT_SHIFT) * BYTES;
    // SAFETY: the address lies in a slab. Its states lie at that offset, not at null; they are
    // committed together with its memory, stay committed, and are only used through atomics.
    unsafe {
        Some(
            NonNull::new_unchecked(states.as_ptr().wrapping_add(unit))
                .cast()
                .as_ref(),
        )
    }
}

/// Returns the states of the unit that contains `address`, in any arena. Aborts the process if the
/// arena has no states: another variant of the allocator has served the process before.
fn far(directory: &Directory, address: usize) -> &'static UnitStates {
    let found = || of_slab(directory, address & !(UNIT - 1), 1)?.first();
    near(address).or_else(found).unwrap_or_else(|| {
        write_error(OTHER_VARIANT.as_bytes());
        abort()
    })
}

/// Returns the states of `units` units of a slab, from `address` on; `None` if its arena has no
/// states.
fn of_slab(directory: &Directory, address: usize, units: usize) -> Option<&'static [UnitStates]> {
    let first = NonNull::new(directory.state_of(address).cast_mut().cast())?;
    // SAFETY: the states of consecutive units are adjacent. Those of a slab are committed together
    // with its memory, stay committed, and are only used through atomics.
    unsafe { Some(core::slice::from_raw_parts(first.as_ptr(), units)) }
}

/// State of a block.
pub(crate) trait State: Copy {
    /// Returns whether a block can begin at `address`, which lies in a slab of this shape.
    fn can_begin(address: usize, shape: &Shape) -> bool;

    /// Returns the state of the block that begins at `address`. `states` are the states of its
    /// unit.
    fn at(states: &'static UnitStates, address: usize, shape: &Shape) -> Self;

    /// Returns the block's slack; `None` if the block is not live.
    fn slack(self) -> Option<usize>;

    /// Records that the block is live, with `slack` bytes of slack.
    fn set_slack(self, slack: usize);

    /// Returns whether the block was freed and filled, and not handed out since.
    fn is_freed(self) -> bool;

    /// Records that the block was freed and filled.
    fn set_freed(self);

    /// Returns the state of a block; `None` if the slow path must find it.
    ///
    /// # Safety
    ///
    /// The block lies in a slab of this shape.
    #[inline(always)]
    unsafe fn of_block(block: NonNull<u8>, shape: &Shape) -> Option<Self> {
        let address = block.addr().get();
        near(address).map(|states| Self::at(states, address, shape))
    }

    /// Returns the state of the block that begins at `address`, which lies in a slab of this shape.
    /// Returns `None` if no block can begin there, or if the slow path must find the state.
    #[inline(always)]
    fn near(address: usize, shape: &Shape) -> Option<Self> {
        let states = near(address)?;
        Self::can_begin(address, shape).then(|| Self::at(states, address, shape))
    }

    /// Returns the state of the block that begins at `address`, which lies in a slab of this shape.
    /// Uses the slow path if necessary. Returns `None` if no block can begin there. Aborts the
    /// process if the arena has no states.
    fn find(directory: &Directory, address: usize, shape: &Shape) -> Option<Self> {
        Self::can_begin(address, shape).then(|| Self::at(far(directory, address), address, shape))
    }
}

// Relaxed, in all methods: locks or the program's own synchronisation order the handover of the
// block. If two threads free a block at the same time, both may find it live; the slab's bitmap
// later detects the second free.

/// State of a short block: one byte.
#[derive(Clone, Copy)]
pub(crate) struct Short(&'static AtomicU8);

impl Short {
    #[inline(always)]
    fn load(self) -> u8 {
        self.0.load(Relaxed)
    }
}

impl State for Short {
    #[inline(always)]
    fn can_begin(address: usize, shape: &Shape) -> bool {
        shape.index(address) * shape.size() == address % UNIT
    }

    #[inline(always)]
    fn at(states: &'static UnitStates, address: usize, shape: &Shape) -> Self {
        let place = (address >> UNIT_SHIFT) * STAGGER + shape.index(address);
        Self(&states.0[place % BYTES])
    }

    #[inline(always)]
    fn slack(self) -> Option<usize> {
        let byte = self.load();
        (byte.wrapping_sub(1) < FREED - 1).then_some(usize::from(byte))
    }

    #[inline(always)]
    fn set_slack(self, slack: usize) {
        self.0.store(slack as u8, Relaxed);
    }

    #[inline(always)]
    fn is_freed(self) -> bool {
        self.load() == FREED
    }

    #[inline(always)]
    fn set_freed(self) {
        self.0.store(FREED, Relaxed);
    }
}

/// State of a long block: one word.
#[derive(Clone, Copy)]
pub(crate) struct Long(&'static AtomicU64);

impl Long {
    /// Returns the state in the word that contains the byte at `place`.
    #[inline(always)]
    fn in_word(states: &'static UnitStates, place: usize) -> Self {
        let words = (&raw const states.0).cast::<AtomicU64>();
        // SAFETY: the states consist of aligned words, which are only used through atomics, and the
        // index is below their number.
        Self(unsafe { &*words.add(place % BYTES / size_of::<u64>()) })
    }

    #[inline(always)]
    fn load(self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Records that the block was never allocated.
    fn forget(self) {
        self.0.store(0, Relaxed);
    }
}

impl State for Long {
    #[inline(always)]
    fn can_begin(address: usize, _: &Shape) -> bool {
        // Long blocks begin at multiples of 128 bytes, so each has a whole word of states.
        address.is_multiple_of(GRAIN * size_of::<u64>())
    }

    #[inline(always)]
    fn at(states: &'static UnitStates, address: usize, _: &Shape) -> Self {
        Self::in_word(states, address % UNIT / GRAIN)
    }

    #[inline(always)]
    fn slack(self) -> Option<usize> {
        let word = self.load();
        (word as u32 == u32::from(LONG)).then_some((word >> 32) as usize)
    }

    #[inline(always)]
    fn set_slack(self, slack: usize) {
        self.0
            .store((slack as u64) << 32 | u64::from(LONG), Relaxed);
    }

    #[inline(always)]
    fn is_freed(self) -> bool {
        self.load() == u64::from(FREED)
    }

    #[inline(always)]
    fn set_freed(self) {
        self.0.store(u64::from(FREED), Relaxed);
    }
}

/// State of a block whose kind, short or long, is known only at run time.
#[derive(Clone, Copy)]
pub(crate) enum Any {
    Short(Short),
    Long(Long),
}

impl State for Any {
    fn can_begin(address: usize, shape: &Shape) -> bool {
        if shape.size() > SHORT {
            Long::can_begin(address, shape)
        } else {
            Short::can_begin(address, shape)
        }
    }

    fn at(states: &'static UnitStates, address: usize, shape: &Shape) -> Self {
        if shape.size() > SHORT {
            Self::Long(Long::at(states, address, shape))
        } else {
            Self::Short(Short::at(states, address, shape))
        }
    }

    fn slack(self) -> Option<usize> {
        match self {
            Self::Short(state) => state.slack(),
            Self::Long(state) => state.slack(),
        }
    }

    fn set_slack(self, slack: usize) {
        match self {
            Self::Short(state) => state.set_slack(slack),
            Self::Long(state) => state.set_slack(slack),
        }
    }

    fn is_freed(self) -> bool {
        match self {
            Self::Short(state) => state.is_freed(),
            Self::Long(state) => state.is_freed(),
        }
    }

    fn set_freed(self) {
        match self {
            Self::Short(state) => state.set_freed(),
            Self::Long(state) => state.set_freed(),
        }
    }
}

/// Clears the states of all blocks of a new slab of `class` at `base`. Other state bytes keep the
/// values of earlier slabs, which mark no block as live.
pub(super) fn forget_all(directory: &Directory, base: NonNull<u8>, class: SizeClass) {
    if !directory.has_states() {
        return;
    }
    let address = base.addr().get();
    if let Some(states) = of_slab(directory, address, class.geometry().units.into()) {
        forget_from(states, address, class);
    }
}

/// Clears the states of all blocks of a slab of `class` at `address`. `states` are those of its
/// units.
fn forget_from(states: &'static [UnitStates], address: usize, class: SizeClass) {
    let shape = Shape::of(class);
    let blocks = usize::from(class.geometry().blocks);
    if shape.size() <= SHORT {
        // The states of short blocks are adjacent bytes. The cleared words may include some bytes
        // that belong to no block.
        let first = (address >> UNIT_SHIFT) * STAGGER;
        for word in 0..blocks.div_ceil(size_of::<u64>()) {
            Long::in_word(&states[0], first + word * size_of::<u64>()).forget();
        }
        return;
    }
    for block in 0..blocks {
        let offset = block * shape.size();
        Long::at(&states[offset / UNIT], address + offset, shape).forget();
    }
}

#[cfg(test)]
mod tests;
