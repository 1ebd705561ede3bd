//! States of blocks, which the hardened variant keeps out of band.
//!
//! Each unit has one byte of state for each [`GRAIN`] bytes. While the program has a block, its
//! state records the slack: the number of bytes at its end that the program did not ask for. After
//! the block was freed, the state records that it was filled. The state is zero if the program
//! never had the block. Where no block of the slab's class has its state, it may still record that
//! a block of an earlier slab of another class was freed.
//!
//! ```text
//!  short block:  | slack |                         1 to 253
//!  long block:   | 255 | 0 | 0 | 0 | slack, 32 bits |
//!  freed:        | 254 |                           a whole word for long blocks
//! ```
//!
//! The state of a short block lies at the block's index in the unit, so that those of 64 blocks
//! share a cache line, whatever their size. The place of the first one differs from unit to unit,
//! so that the lines of all units do not compete for the same places in the cache. The state of a
//! long block lies at the block's distance from the unit's start.

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
/// First byte of the state of a long block that the program has.
const LONG: u8 = 255;
/// Number of bytes of a unit's states.
const BYTES: usize = UNIT / GRAIN;
/// Distance by which the states of the next unit begin later: two cache lines.
const STAGGER: usize = 128;
/// Message for a slab whose blocks have no states.
const OTHER_VARIANT: &str =
    "elfmalloc: another variant served this process before the hardened one; use one of them\n";

/// Location of the states, shifted so that those of address zero would lie there. Null until it is
/// known, and for ever where there are several arenas.
static STATES: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());

/// Returns whether the location of the states is known.
pub(crate) fn are_known() -> bool {
    !STATES.load(Relaxed).is_null()
}

/// Derives the location of the states from a block of a slab, if there are states. Where the class
/// map knows the block, all slabs lie in one arena. Nothing is stored once the location is known,
/// because every fast path reads the word.
#[cold]
pub(crate) fn find_states(map: &ClassMap, directory: &Directory, block: NonNull<u8>) {
    let address = block.addr().get();
    if are_known() || map.get(address) == SizeClass::NONE {
        return;
    }
    let state = directory.state_of(address).cast_mut().cast::<u8>();
    if !state.is_null() {
        // Relaxed: every thread that stores here stores the same.
        STATES.store(state.wrapping_sub(address / GRAIN), Relaxed);
    }
}

/// Returns the states of the unit in a slab that `address` lies in; `None` if the slow path has to
/// find them.
#[inline(always)]
fn near(address: usize) -> Option<NonNull<u8>> {
    let states = NonNull::new(STATES.load(Relaxed))?;
    let unit = (address >> UNIT_SHIFT) * BYTES;
    // SAFETY: the states of a slab's memory lie at that distance, and are not at null.
    unsafe { Some(NonNull::new_unchecked(states.as_ptr().wrapping_add(unit))) }
}

/// Returns the states of the unit, in any arena. If there are none, another variant of the
/// allocator served this process first and created arenas without states: the process is aborted.
fn far(directory: &Directory, address: usize) -> NonNull<u8> {
    let start = address & !(UNIT - 1);
    let found = || NonNull::new(directory.state_of(start).cast_mut().cast());
    near(address).or_else(found).unwrap_or_else(|| {
        write_error(OTHER_VARIANT.as_bytes());
        abort()
    })
}

/// State of a block.
pub(crate) trait State: Copy {
    /// Returns whether a block of this shape can begin at `address`, which lies in a slab of it.
    fn can_begin(address: usize, shape: &Shape) -> bool;

    /// Returns the state of the block that begins at `address`, where `states` are those of its
    /// unit.
    ///
    /// # Safety
    ///
    /// The states of the unit are there, and a block can begin at the address.
    unsafe fn at(states: NonNull<u8>, address: usize, shape: &Shape) -> Self;

    /// Returns the block's slack; `None` if the program has no block there.
    fn slack(self) -> Option<usize>;

    /// Records that the program has the block, with `slack` bytes at its end.
    fn set_slack(self, slack: usize);

    /// Returns whether the block was filled, and not handed out since.
    fn is_freed(self) -> bool;

    /// Records that the program no longer has the block, and that the block is filled.
    fn set_freed(self);

    /// Records that the program never had the block.
    fn forget(self);

    /// Returns the state of a block; `None` if the slow path has to find it.
    ///
    /// # Safety
    ///
    /// The block is one of a slab of this shape.
    #[inline(always)]
    unsafe fn of_block(block: NonNull<u8>, shape: &Shape) -> Option<Self> {
        let address = block.addr().get();
        // SAFETY: the states of a slab's memory are committed with it, and stay.
        near(address).map(|states| unsafe { Self::at(states, address, shape) })
    }

    /// Returns the state of the block at any address in such a slab; `None` also if no block can
    /// begin there.
    #[inline(always)]
    fn near(address: usize, shape: &Shape) -> Option<Self> {
        let states = near(address)?;
        // SAFETY: the states of a slab's memory are committed with it, and a block can begin at the
        // address.
        Self::can_begin(address, shape).then(|| unsafe { Self::at(states, address, shape) })
    }

    /// Returns the state of the block at any address in such a slab, on the slow path if necessary;
    /// `None` if no block can begin there.
    fn find(directory: &Directory, address: usize, shape: &Shape) -> Option<Self> {
        // SAFETY: the states of a slab's memory are committed with it, and a block can begin at the
        // address.
        Self::can_begin(address, shape)
            .then(|| unsafe { Self::at(far(directory, address), address, shape) })
    }
}

// Relaxed, below: locks, or the program, order the handover of the block itself. If two threads
// free a block at the same moment, both may find it live; the slab's bitmap detects that later.

/// State of a short block.
#[derive(Clone, Copy)]
pub(crate) struct Short(NonNull<AtomicU8>);

impl Short {
    #[inline(always)]
    fn cell(&self) -> &AtomicU8 {
        // SAFETY: `at` made this from the state of a block, which stays with the arena.
        unsafe { self.0.as_ref() }
    }

    #[inline(always)]
    fn load(self) -> u8 {
        self.cell().load(Relaxed)
    }
}

impl State for Short {
    #[inline(always)]
    fn can_begin(address: usize, shape: &Shape) -> bool {
        shape.index(address) * shape.size() == address % UNIT
    }

    #[inline(always)]
    unsafe fn at(states: NonNull<u8>, address: usize, shape: &Shape) -> Self {
        let place = ((address >> UNIT_SHIFT) * STAGGER + shape.index(address)) % BYTES;
        // SAFETY: the place is below `BYTES`, and the caller passes the states of the whole unit.
        Self(unsafe { states.add(place) }.cast())
    }

    #[inline(always)]
    fn slack(self) -> Option<usize> {
        let byte = self.load();
        (byte.wrapping_sub(1) < FREED - 1).then_some(usize::from(byte))
    }

    #[inline(always)]
    fn set_slack(self, slack: usize) {
        self.cell().store(slack as u8, Relaxed);
    }

    #[inline(always)]
    fn is_freed(self) -> bool {
        self.load() == FREED
    }

    #[inline(always)]
    fn set_freed(self) {
        self.cell().store(FREED, Relaxed);
    }

    #[inline(always)]
    fn forget(self) {
        self.cell().store(0, Relaxed);
    }
}

/// State of a long block.
#[derive(Clone, Copy)]
pub(crate) struct Long(NonNull<AtomicU64>);

impl Long {
    #[inline(always)]
    fn cell(&self) -> &AtomicU64 {
        // SAFETY: `at` made this from the state of a block, which stays with the arena.
        unsafe { self.0.as_ref() }
    }

    #[inline(always)]
    fn load(self) -> u64 {
        self.cell().load(Relaxed)
    }
}

impl State for Long {
    #[inline(always)]
    fn can_begin(address: usize, _: &Shape) -> bool {
        // Long blocks begin at multiples of 128 bytes, whose states are words.
        address.is_multiple_of(GRAIN * size_of::<u64>())
    }

    #[inline(always)]
    unsafe fn at(states: NonNull<u8>, address: usize, _: &Shape) -> Self {
        // SAFETY: the place is below `BYTES`, and the caller passes the states of the whole unit.
        Self(unsafe { states.add(address % UNIT / GRAIN) }.cast())
    }

    #[inline(always)]
    fn slack(self) -> Option<usize> {
        let word = self.load();
        (word as u32 == u32::from(LONG)).then_some((word >> 32) as usize)
    }

    #[inline(always)]
    fn set_slack(self, slack: usize) {
        self.cell()
            .store((slack as u64) << 32 | u64::from(LONG), Relaxed);
    }

    #[inline(always)]
    fn is_freed(self) -> bool {
        self.load() == u64::from(FREED)
    }

    #[inline(always)]
    fn set_freed(self) {
        self.cell().store(u64::from(FREED), Relaxed);
    }

    #[inline(always)]
    fn forget(self) {
        self.cell().store(0, Relaxed);
    }
}

/// State of any block.
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

    unsafe fn at(states: NonNull<u8>, address: usize, shape: &Shape) -> Self {
        // SAFETY: the caller passes the states of the unit, and a block can begin at the address.
        unsafe {
            if shape.size() > SHORT {
                Self::Long(Long::at(states, address, shape))
            } else {
                Self::Short(Short::at(states, address, shape))
            }
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

    fn forget(self) {
        match self {
            Self::Short(state) => state.forget(),
            Self::Long(state) => state.forget(),
        }
    }
}

/// Clears the states of the blocks of a new slab of `class` at `base`, of which the program has no
/// block. States of earlier slabs stay where no block begins now: they record that the program has
/// none.
pub(super) fn forget_all(directory: &Directory, base: NonNull<u8>, class: SizeClass) {
    let address = base.addr().get();
    let states = directory.state_of(address).cast_mut().cast();
    let Some(states) = NonNull::new(states) else {
        return;
    };
    // SAFETY: the states of a slab's units are committed with them.
    unsafe { forget_from(states, address, class) };
}

/// Clears the states of the blocks of a slab at `address`, whose states begin at `states`.
///
/// # Safety
///
/// The states of all units of the slab are there.
unsafe fn forget_from(states: NonNull<u8>, address: usize, class: SizeClass) {
    let shape = Shape::of(class);
    for block in 0..usize::from(class.geometry().blocks) {
        let offset = block * shape.size();
        // SAFETY: the states of all units of the slab are there, and a block begins at the offset.
        unsafe {
            let states = states.add(offset / UNIT * BYTES);
            Any::at(states, address + offset, shape).forget();
        }
    }
}

#[cfg(test)]
mod tests;
