//! Table of free regions with contents that are in no thread's cache.

use crate::cap::Cap;
use crate::class::{ENTRIES, SizeClass};
use crate::region::Region;

type Entry = (Region, SizeClass);

const NOTHING: Entry = (Region(0), SizeClass::SMALLEST);

/// Table of dirty regions, in order of arrival, except that an exchange puts a region at the front.
/// The cap counts all of them.
#[derive(Debug)]
pub struct Dirty {
    entries: [Entry; ENTRIES],
    count: usize,
}

impl Dirty {
    /// Creates an empty table.
    pub const fn new() -> Self {
        Self {
            entries: [NOTHING; ENTRIES],
            count: 0,
        }
    }

    fn remove(&mut self, at: usize) -> Entry {
        let entry = self.entries[at];
        self.entries.copy_within(at + 1..self.count, at);
        self.count -= 1;
        entry
    }

    /// Adds a region if the cap and the table have room. Returns whether the region was added.
    #[must_use]
    pub fn keep(&mut self, region: Region, class: SizeClass, cap: &Cap, most: usize) -> bool {
        let kept = self.count < ENTRIES && cap.lease(class.bytes(), most);
        if kept {
            self.entries[self.count] = (region, class);
            self.count += 1;
        }
        kept
    }

    /// Removes and returns the oldest region, if `wanted` returns true for it.
    pub fn take_oldest(&mut self, cap: &Cap, wanted: impl Fn(Region) -> bool) -> Option<Entry> {
        let oldest = self.entries[..self.count].first()?;
        if !wanted(oldest.0) {
            return None;
        }
        let (region, class) = self.remove(0);
        cap.unlease(class.bytes());
        Some((region, class))
    }

    /// Returns the index of the newest region of the class.
    fn last_of(&self, class: SizeClass) -> Option<usize> {
        (0..self.count)
            .rev()
            .find(|at| self.entries[*at].1 == class)
    }

    /// Removes and returns the newest region of the class. If there is none, splits a larger
    /// region: returns its front, and keeps the rest in the table. Returns `None` if no region is
    /// larger, or if the table has no room for the rest.
    pub fn take(&mut self, class: SizeClass, cap: &Cap) -> Option<Region> {
        let region = match self.last_of(class) {
            Some(at) => self.remove(at).0,
            None => self.take_front(class)?,
        };
        // Only the returned region leaves the table, so the cap still counts the rest of a larger
        // region.
        cap.unlease(class.bytes());
        Some(region)
    }

    /// Takes the front of the newest region of the smallest larger class. The rest has the same
    /// age, so it stays in the same place of the table. It forms one piece of each class from
    /// `class` to below the region's class. Returns `None` if no region is larger, or if the table
    /// has no room for the pieces.
    fn take_front(&mut self, class: SizeClass) -> Option<Region> {
        let larger = (0..self.count)
            .rev()
            .filter(|at| self.entries[*at].1 > class);
        let at = larger.min_by_key(|at| self.entries[*at].1)?;
        let (region, whole) = self.entries[at];
        let pieces = whole.index() - class.index();
        if self.count - 1 + pieces > ENTRIES {
            return None;
        }
        self.entries.copy_within(at + 1..self.count, at + pieces);
        self.count = self.count - 1 + pieces;
        let classes = (class.index()..whole.index()).filter_map(SizeClass::of_index);
        for (place, piece) in (at..).zip(classes) {
            self.entries[place] = (Region(region.0 + piece.bytes()), piece);
        }
        Some(region)
    }

    /// If the newest region of the class in the table was freed later than `region`, exchanges the
    /// two: puts `region` into the table and returns the newest. Otherwise returns `region`.
    #[must_use]
    pub fn exchange_for_younger(&mut self, region: Region, class: SizeClass, now: u64) -> Region {
        let Some(at) = self.last_of(class) else {
            return region;
        };
        let found = self.entries[at].0;
        if found.age(now) >= region.age(now) {
            return region;
        }
        // The older region goes to the front, so that it is purged next.
        self.entries.copy_within(..at, 1);
        self.entries[0] = (region, class);
        found
    }

    /// Returns the total size of the regions in the table in bytes.
    pub fn bytes(&self) -> usize {
        let entries = self.entries[..self.count].iter();
        entries.map(|entry| entry.1.bytes()).sum()
    }

    /// Returns the number of regions of a class.
    pub fn count(&self, class: SizeClass) -> usize {
        let entries = self.entries[..self.count].iter();
        entries.filter(|entry| entry.1 == class).count()
    }
}
