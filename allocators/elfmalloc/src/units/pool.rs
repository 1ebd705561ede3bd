//! Pool of free units, shared by all classes and threads.
//!
//! Units that may still be resident are handed out first, lowest address first. Memory is returned
//! to the system in the opposite order. So the pool reuses memory before new pages are touched, and
//! idle memory forms long runs.

mod check;

use core::ops::Range;
use core::ptr::NonNull;

use heapdrome_pages::{Pages, Placed};

use crate::settings::Settings;
use crate::size_class::UNIT_SHIFT;
use crate::units::amount::Units;
use crate::units::arena::{Arena, LARGEST_RUN, MOST};
use crate::units::descriptor::DescriptorRef;
use crate::units::directory::Directory;
use crate::units::growth::{
    HugePages, commit, huge_pages_around, resident_along, soil_huge_pages, whole_pages,
};
use crate::units::unit_map::UnitMap;

/// Address and number of adjacent units that were taken out of the pool, so that no other code uses
/// them.
pub(crate) type Taken = (NonNull<u8>, Units);

/// Run of adjacent units.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// First byte of the run.
    pub base: NonNull<u8>,
    /// Descriptor of the first unit.
    pub descriptor: DescriptorRef,
    /// Number of units.
    pub units: Units,
    /// Whether the memory reads as zero.
    pub clean: bool,
    /// Number of units that may newly become resident when the run is touched: units of the run,
    /// and others in its huge pages.
    pub fresh: Units,
}

/// Units of all arenas, guarded by a lock.
#[derive(Debug)]
#[repr(C)]
pub struct Pool {
    count: usize,
    pub(super) huge: HugePages,
    with_states: bool,
    /// Whether there is a class map. The class map covers only the first arena, as does the fast
    /// path to the states of blocks.
    pub single: bool,
    /// Number of units in use.
    pub live: Units,
    /// Number of free units that may be resident.
    pub dirty: Units,
    /// Minimum of `dirty` since the current epoch began.
    pub dirty_low: Units,
    /// Number of units that threads are purging. During the purge, they are in neither map of their
    /// arena.
    purging: Units,
    /// Number of units that are readable and writable.
    pub committed: Units,
    /// Maximum of `committed` before the latest call of [`shrink`](Self::shrink).
    pub peak: Units,
    arenas: [Arena; MOST],
}

// SAFETY: any thread may use the pointers in the pool while it holds the pool's lock.
unsafe impl Send for Pool {}

impl Pool {
    /// Creates a pool without memory.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            arenas: [const { Arena::NONE }; MOST],
            count: 0,
            huge: HugePages::Undecided,
            with_states: false,
            single: false,
            live: Units::NONE,
            dirty: Units::NONE,
            dirty_low: Units::NONE,
            purging: Units::NONE,
            committed: Units::NONE,
            peak: Units::NONE,
        }
    }

    /// Applies the settings, and finds room for an arena of the size that they give. Returns its
    /// first address and size; `None` without a size or without room: the pool uses small arenas.
    pub fn start(
        &mut self,
        pages: &impl Pages,
        directory: &Directory,
        settings: &Settings,
    ) -> Option<(NonNull<u8>, usize)> {
        self.huge = HugePages::of(settings.huge_pages);
        self.with_states = settings.states;
        let wanted = (settings.arena != 0).then_some(settings.arena);
        let arena = wanted.and_then(|bytes| Arena::find(pages, bytes, settings.states))?;
        directory.add(&arena);
        let base = arena.address(0);
        self.arenas[0] = arena;
        self.count = 1;
        Some((base, settings.arena))
    }

    /// Sets whether to request huge pages, unless the settings decide.
    pub fn prefer_huge_pages(&mut self, huge: bool) {
        if self.huge == HugePages::Undecided {
            self.huge = HugePages::of(Some(huge));
        }
    }

    /// Returns whether the pool has a run of `units` dirty units.
    #[must_use]
    pub fn has_dirty_run(&self, units: Units) -> bool {
        let arenas = &self.arenas[..self.count];
        let has_run = |arena: &Arena| find_in(arena, &arena.dirty, units.count(), 1).is_some();
        self.dirty >= units && arenas.iter().any(has_run)
    }

    /// Returns whether an arena has at least `units` units, free or not.
    #[must_use]
    pub fn may_hold(&self, units: Units) -> bool {
        let arenas = &self.arenas[..self.count];
        arenas.iter().any(|arena| arena.units() >= units.count())
    }

    /// Takes a run of `units` at a multiple of `alignment` bytes. Returns `None` if out of memory.
    pub fn allocate(
        &mut self,
        pages: &impl Pages,
        directory: &Directory,
        units: Units,
        alignment: usize,
    ) -> Option<Run> {
        let count = units.count();
        let found = self.find(count, alignment);
        let (arena, unit) = found.or_else(|| self.grow(pages, directory, count, alignment))?;
        Some(self.take(arena, unit, count))
    }

    /// Returns a run to the pool. If `dirty` is true, its pages may be resident.
    ///
    /// # Safety
    ///
    /// The units belong to the caller, who no longer uses them.
    pub unsafe fn free(&mut self, base: *mut u8, units: Units, dirty: bool) {
        let Some((arena, unit)) = self.locate(base.addr()) else {
            debug_assert!(false, "a run of no arena");
            return;
        };
        let arena = &mut self.arenas[arena];
        arena.free.change(unit, units.count(), true);
        if dirty {
            arena.dirty.change(unit, units.count(), true);
            self.dirty += units;
        }
        self.live -= units;
    }

    /// Extends a run of `from` units to `to` units, at its end. Returns false, without any change,
    /// if the units there are not free.
    pub fn extend(&mut self, base: *mut u8, from: Units, to: Units) -> bool {
        let Some((index, unit)) = self.locate(base.addr()) else {
            return false;
        };
        let more = (to - from).count();
        let arena = &self.arenas[index];
        let end = unit + from.count();
        if end + more > arena.committed || arena.free.run_from(end, more) < more {
            return false;
        }
        self.take(index, end, more);
        true
    }

    /// Takes up to `most` adjacent dirty units out of the pool, so that they can be purged without
    /// the lock. Chooses the units that would be handed out last. If these may be parts of huge
    /// pages, takes only whole huge pages: purging a part would split the rest into small pages.
    pub fn take_dirty(&mut self, most: Units) -> Option<Taken> {
        self.take_dirty_run(most, true, &(0..0))
    }

    /// Takes dirty units like [`take_dirty`](Self::take_dirty), but also parts of huge pages, and
    /// none at addresses in `spared`.
    pub fn take_any_dirty(&mut self, most: Units, spared: &Range<usize>) -> Option<Taken> {
        self.take_dirty_run(most, false, spared)
    }

    #[cold]
    fn take_dirty_run(&mut self, most: Units, whole: bool, spared: &Range<usize>) -> Option<Taken> {
        for arena in self.arenas[..self.count].iter_mut().rev() {
            let mut below = usize::MAX;
            while let Some(last) = arena.dirty.last_before(below) {
                let address = arena.address(last).addr().get();
                if spared.contains(&address) {
                    below = last - ((address - spared.start) >> UNIT_SHIFT);
                    continue;
                }
                let above = address.checked_sub(spared.end);
                let room =
                    above.map_or(most, |above| most.min(Units::filled_by(above) + Units::ONE));
                let run = arena.dirty.run_before(last + 1, room.count());
                below = last + 1 - run;
                let (first, count) = if whole {
                    whole_pages(arena, below, run)
                } else {
                    (below, run)
                };
                if count == 0 {
                    continue;
                }
                arena.free.change(first, count, false);
                arena.dirty.change(first, count, false);
                let taken = Units::new(count);
                self.dirty -= taken;
                self.dirty_low = self.dirty_low.min(self.dirty);
                self.purging += taken;
                return Some((arena.address(first), taken));
            }
        }
        None
    }

    /// Returns the addresses of the huge pages that overlap a run, and the number of dirty units in
    /// them.
    pub(crate) fn huge_pages_of(&self, run: &Run) -> (Range<usize>, Units) {
        let Some((index, first)) = self.locate(run.base.addr().get()) else {
            return (0..0, Units::NONE);
        };
        let arena = &self.arenas[index];
        let pages = huge_pages_around(arena, first, run.units.count());
        if pages.is_empty() {
            return (0..0, Units::NONE);
        }
        let base = arena.address(0).addr().get();
        let addresses = base + (pages.start << UNIT_SHIFT)..base + (pages.end << UNIT_SHIFT);
        let dirty = pages.filter(|&unit| arena.dirty.contains(unit)).count();
        (addresses, Units::new(dirty))
    }

    /// Puts back units that were taken out to be purged. If `clean` is true, the purge succeeded.
    #[cold]
    pub fn put_purged(&mut self, base: NonNull<u8>, units: Units, clean: bool) {
        self.purging -= units;
        if let Some((index, unit)) = self.locate(base.addr().get()) {
            let arena = &mut self.arenas[index];
            arena.free.change(unit, units.count(), true);
            if !clean {
                arena.dirty.change(unit, units.count(), true);
                self.dirty += units;
            }
        }
    }

    /// Releases the addresses of clean, free units at the ends of arenas, except for `kept` units
    /// of each arena. Returns whether addresses were released.
    #[cold]
    pub fn shrink(&mut self, pages: &impl Pages, directory: &Directory, kept: Units) -> bool {
        let before = self.committed;
        self.peak = self.peak.max(before);
        for (index, arena) in self.arenas[..self.count].iter_mut().enumerate() {
            let gone = arena.shrink(pages, kept.count());
            if gone != 0 {
                directory.extend(index, arena);
                self.committed -= Units::new(gone);
            }
        }
        self.committed != before
    }

    /// Discards the records of each arena's last commit.
    pub(crate) fn forget_steps(&mut self) {
        for arena in &mut self.arenas[..self.count] {
            arena.last_step = None;
        }
    }

    fn find(&self, count: usize, alignment: usize) -> Option<(usize, usize)> {
        let arenas = &self.arenas[..self.count];
        let dirty = arenas
            .iter()
            .map(|arena| find_in(arena, &arena.dirty, count, alignment));
        if self.dirty.count() >= count
            && let Some(found) = with_index(dirty)
        {
            return Some(found);
        }
        let in_free = |arena: &Arena| find_in(arena, &arena.free, count, alignment);
        with_index(arenas.iter().map(in_free))
    }

    fn take(&mut self, index: usize, unit: usize, count: usize) -> Run {
        let arena = &mut self.arenas[index];
        let along = resident_along(arena, unit, count);
        arena.free.change(unit, count, false);
        let soiled = arena.dirty.change(unit, count, false);
        let more = Units::new(soil_huge_pages(arena, unit, count));
        self.dirty = self.dirty + more - Units::new(soiled);
        self.dirty_low = self.dirty_low.min(self.dirty);
        let units = Units::new(count);
        self.live += units;
        Run {
            base: arena.address(unit),
            descriptor: arena.descriptor(unit),
            units,
            clean: soiled == 0,
            fresh: Units::new(count - soiled + along),
        }
    }

    /// Commits more units of the newest arena with room, or creates another arena if several are
    /// allowed. Returns the arena and first unit of the run.
    fn grow(
        &mut self,
        pages: &impl Pages,
        directory: &Directory,
        count: usize,
        alignment: usize,
    ) -> Option<(usize, usize)> {
        let slack = (alignment >> UNIT_SHIFT).saturating_sub(1);
        let huge = self.huge.wanted();
        let mut is_full = false;
        for (index, arena) in self.arenas[..self.count].iter_mut().enumerate().rev() {
            match commit(arena, pages, huge, count, slack) {
                Ok(units) => {
                    directory.extend(index, arena);
                    self.committed += Units::new(units);
                    return self.find(count, alignment);
                }
                Err(reason) => is_full |= reason == Placed::Occupied,
            }
        }
        // Create small arenas beside the large one only if the large one is full, because frees in
        // small arenas take the slow path. If blocks have states, create none: the fast path finds
        // states in one arena only.
        let alone = self.single && (self.with_states || !is_full);
        if alone || self.count == MOST || count.max(slack) > LARGEST_RUN {
            return None;
        }
        let mut arena = self.reserve_small(pages, count + slack)?;
        let Ok(units) = commit(&mut arena, pages, huge, count, slack) else {
            // SAFETY: the arena is not published yet, and none of its units is committed.
            unsafe { arena.release(pages) };
            return None;
        };
        directory.add(&arena);
        self.arenas[self.count] = arena;
        self.count += 1;
        self.committed += Units::new(units);
        self.find(count, alignment)
    }

    /// Reserves one more small arena with room for `wanted` units. Its size grows with the
    /// committed memory.
    fn reserve_small(&self, pages: &impl Pages, wanted: usize) -> Option<Arena> {
        let wanted = wanted.next_power_of_two();
        let mut units = wanted
            .max((self.committed / 2).count().next_power_of_two())
            .max(128);
        loop {
            match Arena::reserve(pages, units << UNIT_SHIFT, self.with_states) {
                None if units > wanted => units = (units / 2).max(wanted),
                reserved => return reserved,
            }
        }
    }

    fn locate(&self, address: usize) -> Option<(usize, usize)> {
        let arenas = self.arenas[..self.count].iter();
        with_index(arenas.map(|arena| arena.unit_of(address)))
    }
}

impl Default for Pool {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the first answer that is not `None`, with its index.
fn with_index(answers: impl Iterator<Item = Option<usize>>) -> Option<(usize, usize)> {
    answers
        .enumerate()
        .find_map(|(index, answer)| Some((index, answer?)))
}

/// Finds a run of `count` members of an arena's map that begins at a multiple of `alignment` bytes.
/// Returns its first unit.
fn find_in(arena: &Arena, map: &UnitMap, count: usize, alignment: usize) -> Option<usize> {
    // The alignment applies to addresses, not to the arena's unit numbers.
    let before = arena.address(0).addr().get() >> UNIT_SHIFT;
    map.find_run(count, (alignment >> UNIT_SHIFT).max(1), before)
}
