//! Arenas: ranges of address space that are divided into units.
//!
//! Usually there is one arena of up to a terabyte. It reserves addresses only as it grows, because
//! a program may limit its own address space at any time.
//!
//! ```text
//!  | states ...      | descriptors ...      | units ...                                        |
//!  ^ each part grows from its start, in a range of addresses that other mappings reach last
//! ```
//!
//! If the system cannot place mappings at given addresses, the allocator uses up to [`MOST`] small
//! arenas instead, and reserves each as a whole.

use core::ptr::NonNull;
use heapdrome_pages::system::Usage;
use heapdrome_pages::{Access, Advice, Pages, Placed};

use crate::size_class::{UNIT, UNIT_SHIFT};
use crate::units::descriptor::{DESCRIPTOR, Descriptor, DescriptorRef};
use crate::units::unit_map::UnitMap;

/// Maximum number of arenas. Few under Miri, where each arena slows down every use of the back-end.
pub const MOST: usize = if cfg!(miri) { 8 } else { 64 };
/// Number of units of the longest run for which a new arena is created. Longer runs come only from
/// existing arenas.
pub const LARGEST_RUN: usize = 512;
/// Number of units in a huge page.
pub const HUGE: usize = (2 << 20) / UNIT;
/// Granularity, in bytes, in which descriptors are committed.
const DESCRIPTOR_STEP: usize = UNIT;
/// Granularity, in bytes, of the addresses at which blocks begin. An arena with states has one byte
/// of state for each of these addresses.
pub(crate) const GRAIN: usize = 16;

/// Record of an arena's last commit.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Resources that the process had used before the commit.
    pub(super) before: Usage,
    pub(super) units: usize,
}

/// Arena, guarded by the pool's lock.
#[derive(Debug)]
pub struct Arena {
    pub(crate) base: *mut u8,
    units: usize,
    /// Number of units at the start that are readable and writable, or skipped.
    pub committed: usize,
    /// Number of units below [`committed`](Self::committed) that are skipped because other mappings
    /// occupy some of them.
    pub skipped: usize,
    /// Whether addresses are reserved only when they are committed.
    grows: bool,
    pub(crate) descriptors: *mut Descriptor,
    descriptor_bytes: usize,
    state_bytes: usize,
    /// One byte of state for each [`GRAIN`] bytes of the units; null if blocks have no states.
    pub(crate) states: *mut u8,
    /// Committed units that are neither skipped, nor in use, nor being purged.
    pub free: UnitMap,
    /// Free units that may be resident. They may hold old contents.
    pub dirty: UnitMap,
    /// First unit that may be part of a huge page; `None` if there is none.
    pub huge_from: Option<usize>,
    /// Last commit, kept while the choice of huge pages may still depend on it.
    pub last_step: Option<Step>,
}

impl Arena {
    /// Placeholder for an unused entry.
    pub const NONE: Self = Self {
        base: core::ptr::null_mut(),
        units: 0,
        committed: 0,
        skipped: 0,
        grows: false,
        descriptors: core::ptr::null_mut(),
        descriptor_bytes: 0,
        state_bytes: 0,
        states: core::ptr::null_mut(),
        free: UnitMap::none(),
        dirty: UnitMap::none(),
        huge_from: None,
        last_step: None,
    };

    /// Reserves an arena of `bytes`, a multiple of the unit, and all structures that describe it.
    /// If `with_states` is true, also reserves the states of blocks. Returns `None` if the system
    /// refuses a part.
    pub fn reserve(pages: &impl Pages, bytes: usize, with_states: bool) -> Option<Self> {
        let mut arena = Self {
            units: bytes / UNIT,
            ..Self::NONE
        };
        let whole = arena.reserve_parts(pages, with_states);
        arena.or_release(pages, whole)
    }

    /// Finds room for an arena that grows up to `bytes`, a multiple of the unit, with the
    /// structures of [`reserve`](Self::reserve). Returns `None` if there is no room, or if the
    /// system cannot place mappings at given addresses or refuses the maps.
    pub fn find(pages: &impl Pages, bytes: usize, with_states: bool) -> Option<Self> {
        let mut arena = Self {
            units: bytes / UNIT,
            grows: true,
            ..Self::NONE
        };
        let [_, descriptor_bytes, state_bytes] = bytes_of_parts(arena.units);
        let room = pages.find_room(state_bytes + descriptor_bytes + bytes, HUGE * UNIT)?;
        // SAFETY: the room has space for states, descriptors and units, in this order.
        unsafe {
            let descriptors = room.add(state_bytes);
            arena.descriptors = descriptors.as_ptr().cast();
            arena.base = descriptors.add(descriptor_bytes).as_ptr();
        }
        if with_states {
            arena.states = room.as_ptr();
        }
        // Committing the first descriptors shows whether the system can place mappings.
        if arena.commit_descriptors(pages, 1) != Placed::Done {
            return None;
        }
        let whole = arena.reserve_maps(pages);
        arena.or_release(pages, whole)
    }

    /// Returns a new arena if it is complete (`whole` is not `None`). Otherwise releases the parts
    /// that it has.
    fn or_release(self, pages: &impl Pages, whole: Option<()>) -> Option<Self> {
        if whole.is_none() {
            // SAFETY: no other thread knows a new arena, and none of its units is committed.
            unsafe { self.release(pages) };
            return None;
        }
        Some(self)
    }

    /// Reserves all parts. Returns `None` at the first refusal.
    fn reserve_parts(&mut self, pages: &impl Pages, with_states: bool) -> Option<()> {
        let [_, descriptor_bytes, state_bytes] = bytes_of_parts(self.units);
        let addresses = |bytes| pages.reserve(bytes, UNIT, Access::None);
        self.base = addresses(self.units << UNIT_SHIFT)?.as_ptr();
        if with_states {
            self.states = addresses(state_bytes)?.as_ptr();
        }
        let descriptors = addresses(descriptor_bytes)?;
        self.descriptors = descriptors.as_ptr().cast();
        // SAFETY: the range was just reserved, and no other code uses it yet.
        unsafe { pages.advise(descriptors, descriptor_bytes, Advice::NoHugePages) };
        self.reserve_maps(pages)
    }

    fn reserve_maps(&mut self, pages: &impl Pages) -> Option<()> {
        let [map_bytes, ..] = bytes_of_parts(self.units);
        let maps = pages.reserve(map_bytes, pages.page_size(), Access::ReadWrite)?;
        let words: *mut u64 = maps.as_ptr().cast();
        // SAFETY: the memory is zero, is large enough for both maps, and belongs only to this
        // arena, whose unit numbers are the only numbers in the maps.
        unsafe {
            pages.advise(maps, map_bytes, Advice::NoHugePages);
            [self.free, self.dirty] = UnitMap::pair(words);
        }
        Some(())
    }

    /// Releases the address space that the arena reserved.
    ///
    /// # Safety
    ///
    /// No other thread knows the arena, and none of its units is committed.
    pub unsafe fn release(self, pages: &impl Pages) {
        let [map_bytes, mut descriptor_bytes, mut state_bytes] = bytes_of_parts(self.units);
        let mut unit_bytes = self.units << UNIT_SHIFT;
        if self.grows {
            (unit_bytes, descriptor_bytes, state_bytes) = (0, self.descriptor_bytes, 0);
        }
        let parts = [
            (self.base, unit_bytes),
            (self.free.memory().cast(), map_bytes),
            (self.descriptors.cast(), descriptor_bytes),
            (self.states, state_bytes),
        ];
        for (start, bytes) in parts {
            if let Some(start) = NonNull::new(start)
                && bytes != 0
            {
                // SAFETY: the arena reserved each part with this size, and no other thread knows
                // the arena. If the system refuses, only addresses are lost.
                unsafe { pages.release(start, bytes) };
            }
        }
    }

    /// Returns the memory of a unit.
    ///
    /// # Panics
    ///
    /// If the arena has no such unit.
    #[must_use]
    pub fn address(&self, unit: usize) -> NonNull<u8> {
        assert!(unit < self.units);
        self.part(self.base, unit << UNIT_SHIFT)
    }

    /// Returns the offset, in units, of the arena's first unit in its huge page.
    #[must_use]
    pub fn skew(&self) -> usize {
        (self.base.addr() >> UNIT_SHIFT) % HUGE
    }

    /// Returns the descriptor of a committed unit.
    ///
    /// # Panics
    ///
    /// If the unit is not committed.
    #[must_use]
    pub fn descriptor(&self, unit: usize) -> DescriptorRef {
        assert!(unit < self.committed);
        let descriptor = self.part(self.descriptors, unit * DESCRIPTOR).cast();
        // SAFETY: every committed unit has a committed descriptor. The pointer is derived from that
        // of the arena's first descriptor.
        unsafe { DescriptorRef::new(descriptor) }
    }

    /// Returns the unit at `address`, if the address lies in this arena.
    #[must_use]
    pub fn unit_of(&self, address: usize) -> Option<usize> {
        let unit = address.wrapping_sub(self.base.addr()) >> UNIT_SHIFT;
        (unit < self.units).then_some(unit)
    }

    /// Returns whether blocks have states.
    #[must_use]
    pub const fn has_states(&self) -> bool {
        !self.states.is_null()
    }

    /// Returns the number of units.
    #[must_use]
    pub const fn units(&self) -> usize {
        self.units
    }

    /// Returns the number of units that are not committed yet.
    #[must_use]
    pub const fn uncommitted(&self) -> usize {
        self.units - self.committed
    }

    /// Commits the next `count` units, at most [`uncommitted`](Self::uncommitted), and their
    /// descriptors and states. The new units are free and clean. Commits no unit unless it returns
    /// [`Placed::Done`].
    pub fn commit(&mut self, pages: &impl Pages, count: usize) -> Placed {
        let (units, bytes) = (self.committed + count, count << UNIT_SHIFT);
        let start = self.part(self.base, self.committed << UNIT_SHIFT);
        // The units come first: they are the largest part, and the most likely to be refused.
        let placed = self.open(pages, start, bytes);
        if placed != Placed::Done {
            return placed;
        }
        let described = self.describe(pages, units);
        if described != Placed::Done {
            // Writable memory counts against a limit, so close the units again. SAFETY: the range
            // was opened above, and no thread uses it yet.
            unsafe { self.close(pages, start, bytes) };
            return described;
        }
        self.free.change(self.committed, count, true);
        self.committed = units;
        Placed::Done
    }

    /// Skips the next `count` units, because other mappings occupy some of them. Returns false if
    /// no unit would remain, or if the descriptors or states cannot be committed.
    pub fn skip(&mut self, pages: &impl Pages, count: usize) -> bool {
        let units = self.committed + count;
        let possible = count < self.uncommitted() && self.describe(pages, units) == Placed::Done;
        if possible {
            self.committed = units;
            self.skipped += count;
        }
        possible
    }

    /// Releases the addresses of the clean, free units at the arena's end, except for `kept` units.
    /// Returns the number of released units. An arena that was reserved as a whole releases none.
    pub fn shrink(&mut self, pages: &impl Pages, kept: usize) -> usize {
        let end = self.committed;
        let after_dirty = self.dirty.last_before(end).map_or(0, |unit| unit + 1);
        let free = self.free.run_before(end, end - after_dirty);
        let gone = free.saturating_sub(kept);
        if !self.grows || gone == 0 {
            return 0;
        }
        let first = end - gone;
        // SAFETY: the units are free, and leave the arena as soon as they are released.
        if !unsafe { pages.release(self.address(first), gone << UNIT_SHIFT) } {
            return 0;
        }
        self.free.change(first, gone, false);
        self.committed = first;
        self.last_step = None;
        gone
    }

    /// Returns the address at `offset` in a part of the arena.
    fn part<T>(&self, part: *mut T, offset: usize) -> NonNull<u8> {
        // SAFETY: every part has an address, and the offset lies within it.
        unsafe { NonNull::new_unchecked(part.cast::<u8>().add(offset)) }
    }

    /// Makes a range of the arena's addresses readable and writable.
    fn open(&self, pages: &impl Pages, start: NonNull<u8>, bytes: usize) -> Placed {
        if self.grows {
            return pages.reserve_at(start, bytes, Access::ReadWrite);
        }
        // SAFETY: the arena reserved the range, and no thread uses it yet.
        if unsafe { pages.protect(start, bytes, Access::ReadWrite) } {
            Placed::Done
        } else {
            Placed::Refused
        }
    }

    /// Reverses [`open`](Self::open).
    ///
    /// # Safety
    ///
    /// The range was opened, and no thread uses it.
    unsafe fn close(&self, pages: &impl Pages, start: NonNull<u8>, bytes: usize) {
        // SAFETY: by this function's contract, the range was opened and no thread uses it. If the
        // system refuses, only addresses or writable memory are lost.
        unsafe {
            if self.grows {
                pages.release(start, bytes);
            } else {
                pages.protect(start, bytes, Access::None);
            }
        }
    }

    /// Commits descriptors and states for the first `units` units.
    fn describe(&mut self, pages: &impl Pages, units: usize) -> Placed {
        match self.commit_descriptors(pages, units) {
            Placed::Done => self.commit_states(pages, units),
            not => not,
        }
    }

    fn commit_states(&mut self, pages: &impl Pages, units: usize) -> Placed {
        if self.states.is_null() {
            return Placed::Done;
        }
        let needed = (units * UNIT / GRAIN).next_multiple_of(pages.page_size());
        let opened = self.state_bytes;
        let placed = self.open_part(pages, self.states, opened, needed);
        if placed == Placed::Done {
            self.state_bytes = opened.max(needed);
        }
        placed
    }

    fn commit_descriptors(&mut self, pages: &impl Pages, units: usize) -> Placed {
        let needed = (units * DESCRIPTOR).next_multiple_of(DESCRIPTOR_STEP);
        let opened = self.descriptor_bytes;
        let placed = self.open_part(pages, self.descriptors.cast(), opened, needed);
        if placed == Placed::Done && opened < needed {
            self.descriptor_bytes = needed;
            if self.grows {
                let start = self.part(self.descriptors, opened);
                // SAFETY: the range was just reserved, and no other code uses it yet.
                unsafe { pages.advise(start, needed - opened, Advice::NoHugePages) };
            }
        }
        placed
    }

    /// Opens a part up to `needed` bytes, of which `opened` are open already.
    fn open_part(&self, pages: &impl Pages, part: *mut u8, opened: usize, needed: usize) -> Placed {
        if needed <= opened {
            return Placed::Done;
        }
        self.open(pages, self.part(part, opened), needed - opened)
    }
}

/// Returns the sizes in bytes of the structures for `units` units: both maps, the descriptors, and
/// the states of blocks.
fn bytes_of_parts(units: usize) -> [usize; 3] {
    let maps = UnitMap::words_of_pair(units) * size_of::<u64>();
    let states = units * UNIT / GRAIN;
    [maps, units * DESCRIPTOR, states].map(|bytes| bytes.next_multiple_of(UNIT))
}
