//! What the hardened variant knows of blocks, out of band: their states.
//!
//! Each unit has some bytes for that, one for each [`GRAIN`] of it. Where the program has a block,
//! its state says how many bytes at its end it did not ask for, the slack. Where it had one, it
//! says that the block was filled then. It is zero where the program never had one; where no block
//! of the slab's class has its state, it may still say that one of an earlier slab of another class
//! was freed.
//!
//! ```text
//!  short block:  | slack |                         1 to 253
//!  long block:   | 255 | 0 | 0 | 0 | slack, 32 bits |
//!  freed:        | 254 |                           a whole word for long blocks
//! ```
//!
//! The state of a short block has the place of its index in the unit: those of 64 blocks share a
//! line of the cache, whatever their size. So that the lines of all units do not compete for the
//! same places in the cache, the first one's place differs from unit to unit. The state of a long
//! block has the place of its distance from the unit's start.

use core::ptr::NonNull;
use heapdrome_pages::atomic::{AtomicPtr, AtomicU8, AtomicU64, Ordering::Relaxed};
use heapdrome_pages::system::{abort, write_error};

use crate::size_class::{SizeClass, UNIT, UNIT_SHIFT};
use crate::slabs::shape::{SHORT, Shape};
use crate::units::arena::GRAIN;
use crate::units::class_map::ClassMap;
use crate::units::directory::Directory;

/// The most slack that one byte says.
pub(crate) const MOST_SHORT: usize = 253;
/// The state of a block that was freed and filled.
const FREED: u8 = 254;
/// The state of a long block.
const LONG: u8 = 255;
/// Bytes of a unit's states.
const BYTES: usize = UNIT / GRAIN;
/// How much later those of the next unit begin: two lines of the cache.
const STAGGER: usize = 128;
/// Said where a slab's blocks have no states.
const OTHER_VARIANT: &str =
    "elfmalloc: another variant served this process before the hardened one; use one of them\n";

/// The states, as if those of address zero were there; null until they are known, and for ever
/// where there are several arenas.
static STATES: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());

/// Whether it is known where the states are.
pub(crate) fn are_known() -> bool {
    !STATES.load(Relaxed).is_null()
}

/// Remembers where the states are, from a block of a slab, if there are any. Where the class map
/// knows the block, all slabs lie in one arena. Once they are known nothing is stored: every fast
/// path reads the word.
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

/// Where the states of the unit are that `address` lies in, a slab's; `None` where it takes longer
/// to find.
#[inline(always)]
fn near(address: usize) -> Option<NonNull<u8>> {
    let states = NonNull::new(STATES.load(Relaxed))?;
    let unit = (address >> UNIT_SHIFT) * BYTES;
    // SAFETY: the states of a slab's memory lie that far behind, and are not at null.
    unsafe { Some(NonNull::new_unchecked(states.as_ptr().wrapping_add(unit))) }
}

/// Where the states of the unit are, in whatever arena. Where there are none, another variant of
/// the allocator was used first in this process, and made arenas without: that ends it.
fn far(directory: &Directory, address: usize) -> NonNull<u8> {
    let start = address & !(UNIT - 1);
    let found = || NonNull::new(directory.state_of(start).cast_mut().cast());
    near(address).or_else(found).unwrap_or_else(|| {
        write_error(OTHER_VARIANT.as_bytes());
        abort()
    })
}

/// The state of a block.
pub(crate) trait State: Copy {
    /// Whether a block of this shape can begin at `address`, which lies in a slab of it.
    fn can_begin(address: usize, shape: &Shape) -> bool;

    /// The state of what begins at `address`, where those of its unit are `states`.
    ///
    /// # Safety
    ///
    /// The states of the unit are there, and a block can begin at the address.
    unsafe fn at(states: NonNull<u8>, address: usize, shape: &Shape) -> Self;

    /// How much slack the block has; `None` if the program has no block there.
    fn slack(self) -> Option<usize>;

    /// Says that the program has the block, and that it has `slack` bytes at its end.
    fn set_slack(self, slack: usize);

    /// Whether the block was filled, and not handed out since.
    fn is_freed(self) -> bool;

    /// Says that the program has the block no more, and that it is filled.
    fn set_freed(self);

    /// Says that the program never had the block.
    fn forget(self);

    /// The state of a block; `None` where it takes longer to find.
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

    /// The state of the block at any address in such a slab; `None` also if no block can begin
    /// there.
    #[inline(always)]
    fn near(address: usize, shape: &Shape) -> Option<Self> {
        let states = near(address)?;
        // SAFETY: as above.
        Self::can_begin(address, shape).then(|| unsafe { Self::at(states, address, shape) })
    }

    /// The state of what begins at any address in such a slab, however long it takes to find;
    /// `None` if no block can begin there.
    fn find(directory: &Directory, address: usize, shape: &Shape) -> Option<Self> {
        // SAFETY: the states of a slab's memory are committed with it, and a block can begin at the
        // address.
        Self::can_begin(address, shape)
            .then(|| unsafe { Self::at(far(directory, address), address, shape) })
    }
}

// Relaxed, in what follows: the block itself is handed on through locks, or by the program. Two
// threads that free it at the same moment may both find it live: the slab's bitmap sees that later.

/// That of a short block.
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
        // SAFETY: the caller's promise: there are that many.
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

/// That of a long block.
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
        // SAFETY: the caller's promise: there are that many.
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

/// That of any block.
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
        // SAFETY: the caller's promise.
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

/// Forgets what is known of the blocks of a slab of `class` that is made at `base`, where the
/// program has no block. What others had there before is left where no block begins now: it says
/// that the program has none.
pub(super) fn forget_all(directory: &Directory, base: NonNull<u8>, class: SizeClass) {
    let address = base.addr().get();
    let states = directory.state_of(address).cast_mut().cast();
    let Some(states) = NonNull::new(states) else {
        return;
    };
    // SAFETY: the states of a slab's units are committed with them.
    unsafe { forget_from(states, address, class) };
}

/// Forgets what is known of the blocks of a slab at `address`, whose states begin at `states`.
///
/// # Safety
///
/// The states of all its units are there.
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
