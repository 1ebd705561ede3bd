//! Free regions with contents that no thread keeps for itself.

use crate::cap::Cap;
use crate::class::{ENTRIES, SizeClass};
use crate::region::Region;

type Entry = (Region, SizeClass);

const NOTHING: Entry = (Region(0), SizeClass::SMALLEST);

/// Table of dirty regions, in the order in which they came. The cap counts each of them.
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

    /// Keeps a region if the cap and the table have room. Returns whether it did.
    #[must_use]
    pub fn keep(&mut self, region: Region, class: SizeClass, cap: &Cap, most: usize) -> bool {
        let kept = self.count < ENTRIES && cap.lease(class.bytes(), most);
        if kept {
            self.entries[self.count] = (region, class);
            self.count += 1;
        }
        kept
    }

    /// Takes the region that has been here longest, if it is wanted.
    pub fn take_oldest(&mut self, cap: &Cap, wanted: impl Fn(Region) -> bool) -> Option<Entry> {
        let oldest = self.entries[..self.count].first()?;
        if !wanted(oldest.0) {
            return None;
        }
        let (region, class) = self.remove(0);
        cap.unlease(class.bytes());
        Some((region, class))
    }

    /// Returns the index of the most recent region of the class.
    fn last_of(&self, class: SizeClass) -> Option<usize> {
        (0..self.count)
            .rev()
            .find(|at| self.entries[*at].1 == class)
    }

    /// Takes the most recent region of the class. If there is none, takes the front of the most
    /// recent one of the smallest larger class, whose rest stays here.
    pub fn take(&mut self, class: SizeClass, cap: &Cap) -> Option<Region> {
        let region = match self.last_of(class) {
            Some(at) => self.remove(at).0,
            None => self.take_front(class)?,
        };
        // The rest of a larger region is already counted.
        cap.unlease(class.bytes());
        Some(region)
    }

    /// Takes the front of a larger region. The pieces behind it, one of each class from this one
    /// on, replace the whole region in the table: they are as old.
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

    /// Exchanges a region that has been free for long for the most recent one of its class, if that
    /// was freed later. Returns the younger one.
    #[must_use]
    pub fn exchange_for_younger(&mut self, region: Region, class: SizeClass, now: u64) -> Region {
        let Some(at) = self.last_of(class) else {
            return region;
        };
        let found = self.entries[at].0;
        if found.age(now) >= region.age(now) {
            return region;
        }
        // The older region goes to the front, where it is the next to be purged.
        self.entries.copy_within(..at, 1);
        self.entries[0] = (region, class);
        found
    }

    /// Returns the bytes of all regions.
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
