//! Arenas: stretches of address space that are cut into units.
//!
//! There is one arena of a terabyte, or of 64 or 8 GiB where that is refused, of which nothing is
//! committed at first. Where address space is limited, there are up to [`MOST`] small ones instead.

use core::ptr::NonNull;
use heapdrome_pages::atomic::{
    AtomicPtr, AtomicU8, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

use heapdrome_pages::{Access, Advice, Pages};

use crate::huge::Step;
use crate::size_class::{UNIT, UNIT_SHIFT};
use crate::slab::Slab;
use crate::unit_map::UnitMap;

/// How many arenas there can be. Under Miri few: with every use of the back-end it looks at each.
pub const MOST: usize = if cfg!(miri) { 8 } else { 64 };
/// Units of a huge page.
pub const HUGE: usize = (2 << 20) / UNIT;
/// Descriptors are committed by this many bytes.
const DESCRIPTOR_STEP: usize = UNIT;
/// Blocks begin at multiples of this, and each multiple may have a byte of state.
pub(crate) const GRAIN: usize = 16;

/// An arena; the pool's lock guards it.
#[derive(Debug)]
pub struct Arena {
    base: *mut u8,
    units: usize,
    /// Units from the start that may be read and written.
    pub committed: usize,
    slabs: *mut Slab,
    slab_bytes: usize,
    /// A byte for each [`GRAIN`] of the units; null where there are none.
    states: *mut u8,
    /// Committed units that are in no use.
    pub free: UnitMap,
    /// Those of them that may hold old contents.
    pub dirty: UnitMap,
    /// The first unit that may be part of a huge page.
    pub huge_from: usize,
    /// What was last committed, while that may still decide whether huge pages are asked for.
    pub last_step: Option<Step>,
}

impl Arena {
    /// No arena.
    pub const NONE: Self = Self {
        base: core::ptr::null_mut(),
        units: 0,
        committed: 0,
        slabs: core::ptr::null_mut(),
        slab_bytes: 0,
        states: core::ptr::null_mut(),
        free: UnitMap::none(),
        dirty: UnitMap::none(),
        huge_from: usize::MAX,
        last_step: None,
    };

    /// Reserves an arena of `bytes`, a multiple of the unit, with everything that describes it;
    /// `with_states` says whether the states of blocks belong to that.
    pub fn reserve(pages: &impl Pages, bytes: usize, with_states: bool) -> Option<Self> {
        let mut arena = Self {
            units: bytes / UNIT,
            ..Self::NONE
        };
        if arena.reserve_parts(pages, with_states).is_none() {
            // SAFETY: nobody knows of it yet.
            unsafe { arena.release(pages) };
            return None;
        }
        Some(arena)
    }

    /// Reserves all parts; `None` after the first that is refused.
    fn reserve_parts(&mut self, pages: &impl Pages, with_states: bool) -> Option<()> {
        let [map_bytes, slab_bytes, state_bytes] = bytes_of_parts(self.units);
        let addresses = |bytes| pages.reserve(bytes, UNIT, Access::None);
        self.base = addresses(self.units << UNIT_SHIFT)?.as_ptr();
        if with_states {
            self.states = addresses(state_bytes)?.as_ptr();
        }
        let slabs = addresses(slab_bytes)?;
        self.slabs = slabs.as_ptr().cast();
        let maps = pages.reserve(map_bytes, UNIT, Access::ReadWrite)?;
        let words: *mut u64 = maps.as_ptr().cast();
        // SAFETY: the memory is zero, large enough for both maps, and nobody else's.
        unsafe {
            pages.advise(slabs, slab_bytes, Advice::NoHugePages);
            pages.advise(maps, map_bytes, Advice::NoHugePages);
            self.free = UnitMap::new(words, self.units);
            let second = words.add(UnitMap::memory_words(self.units));
            self.dirty = UnitMap::new(second, self.units);
        }
        Some(())
    }

    /// Gives back what was reserved.
    ///
    /// # Safety
    ///
    /// Nobody else knows the arena.
    pub unsafe fn release(self, pages: &impl Pages) {
        let [map_bytes, slab_bytes, state_bytes] = bytes_of_parts(self.units);
        let parts = [
            (self.base, self.units << UNIT_SHIFT),
            (self.free.memory().cast(), map_bytes),
            (self.slabs.cast(), slab_bytes),
            (self.states, state_bytes),
        ];
        for (start, bytes) in parts {
            if let Some(start) = NonNull::new(start) {
                // SAFETY: the arena reserved each with this size. Where the system refuses, only
                // addresses are lost.
                unsafe { pages.release(start, bytes) };
            }
        }
    }

    /// The memory of a unit.
    ///
    /// # Panics
    ///
    /// If there is no such unit.
    #[must_use]
    pub fn address(&self, unit: usize) -> NonNull<u8> {
        assert!(unit < self.units);
        // SAFETY: the unit lies within the reservation, which is not at null.
        unsafe { NonNull::new_unchecked(self.base.add(unit << UNIT_SHIFT)) }
    }

    /// How many units before the arena's first the huge page begins that it lies in.
    #[must_use]
    pub fn skew(&self) -> usize {
        (self.base.addr() >> UNIT_SHIFT) % HUGE
    }

    /// The descriptor of a committed unit.
    ///
    /// # Panics
    ///
    /// If the unit is not committed.
    #[must_use]
    pub fn slab(&self, unit: usize) -> *mut Slab {
        assert!(unit < self.committed);
        // SAFETY: as many descriptors are committed as units.
        unsafe { self.slabs.add(unit) }
    }

    /// The unit at `address`, if it lies here.
    #[must_use]
    pub fn unit_of(&self, address: usize) -> Option<usize> {
        let unit = address.wrapping_sub(self.base.addr()) >> UNIT_SHIFT;
        (unit < self.units).then_some(unit)
    }

    /// Whether blocks have states.
    #[must_use]
    pub const fn has_states(&self) -> bool {
        !self.states.is_null()
    }

    /// How many units there are.
    #[must_use]
    pub const fn units(&self) -> usize {
        self.units
    }

    /// Units that are not committed yet.
    #[must_use]
    pub const fn uncommitted(&self) -> usize {
        self.units - self.committed
    }

    /// Commits `count` more units, and their descriptors; they are free and clean then.
    pub fn commit(&mut self, pages: &impl Pages, count: usize) -> bool {
        if count > self.uncommitted() {
            return false;
        }
        let (units, bytes) = (self.committed + count, count << UNIT_SHIFT);
        // SAFETY: the range lies in the reservation; nobody uses it yet, nor relies on its being inaccessible.
        unsafe {
            let start = NonNull::new_unchecked(self.base.add(self.committed << UNIT_SHIFT));
            // First what is most, and most likely to be refused.
            if !pages.protect(start, bytes, Access::ReadWrite) {
                return false;
            }
            if !self.commit_descriptors(pages, units) || !self.commit_states(pages, units) {
                // What may be written counts against a limit.
                pages.protect(start, bytes, Access::None);
                return false;
            }
        }
        self.free.change(self.committed, count, true);
        self.committed += count;
        true
    }

    fn commit_states(&self, pages: &impl Pages, units: usize) -> bool {
        let page = pages.page_size();
        let first = (self.committed * UNIT / GRAIN) / page * page;
        let end = (units * UNIT / GRAIN).next_multiple_of(page);
        if self.states.is_null() {
            return true;
        }
        // SAFETY: the range lies in the reservation of the states, which is of whole units.
        unsafe {
            let start = NonNull::new_unchecked(self.states.add(first));
            pages.protect(start, end - first, Access::ReadWrite)
        }
    }

    fn commit_descriptors(&mut self, pages: &impl Pages, units: usize) -> bool {
        let needed = (units * size_of::<Slab>()).next_multiple_of(DESCRIPTOR_STEP);
        if needed <= self.slab_bytes {
            return true;
        }
        // SAFETY: the range lies in the reservation of the descriptors, which is as large as all
        // units want, rounded up in the same way.
        let done = unsafe {
            let start = NonNull::new_unchecked(self.slabs.cast::<u8>().add(self.slab_bytes));
            pages.protect(start, needed - self.slab_bytes, Access::ReadWrite)
        };
        if done {
            self.slab_bytes = needed;
        }
        done
    }
}

/// Bytes of what describes so many units: both maps, the descriptors, the states of blocks.
fn bytes_of_parts(units: usize) -> [usize; 3] {
    let maps = 2 * UnitMap::memory_words(units) * size_of::<u64>();
    let states = units * UNIT / GRAIN;
    [maps, units * size_of::<Slab>(), states].map(|bytes| bytes.next_multiple_of(UNIT))
}

/// Where an arena is, for those that do not hold the pool's lock.
#[derive(Debug)]
struct Extent {
    base: AtomicUsize,
    bytes: AtomicUsize,
    slabs: AtomicPtr<Slab>,
    states: AtomicPtr<u8>,
}

impl Extent {
    /// How far `address` lies behind the start, if it lies in what is committed. Whoever asks may hold no
    /// block of the arena, but a pointer that was never one.
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

    /// Notes that more of arena `index` is committed. The caller holds the pool's lock.
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
