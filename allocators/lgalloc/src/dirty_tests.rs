//! Tests of the table of dirty regions: the regions that are taken, split or exchanged, and the
//! bytes that the cap counts.

use super::*;
use crate::class::{ENTRIES, SizeClass, UNIT};
use crate::region::Region;

/// Table, and the cap that counts its bytes.
struct Table {
    dirty: Dirty,
    cap: Cap,
}

fn class(index: usize) -> SizeClass {
    SizeClass::of_index(index).expect("a class")
}

/// Creates a region that begins at `unit` and was freed at `freed`.
fn region(unit: usize, freed: u64) -> Region {
    Region::new(unit * UNIT, freed)
}

impl Table {
    /// Creates a table of regions, given by unit, class and time.
    fn of(entries: &[(usize, usize, u64)]) -> Self {
        let held = AtomicUsize::new(0);
        let mut table = Self {
            dirty: Dirty::new(),
            cap: Cap { held },
        };
        for (unit, index, freed) in entries {
            assert!(table.keep(region(*unit, *freed), class(*index), usize::MAX));
        }
        table
    }

    fn keep(&mut self, region: Region, class: SizeClass, most: usize) -> bool {
        self.dirty.keep(region, class, &self.cap, most)
    }

    fn take(&mut self, index: usize) -> Option<usize> {
        let taken = self.dirty.take(class(index), &self.cap);
        taken.map(|region| region.start() / UNIT)
    }

    /// Takes out all regions, oldest first. Returns the unit and class of each.
    fn drain(mut self) -> Vec<(usize, usize)> {
        let oldest = || self.dirty.take_oldest(&self.cap, |_| true);
        let all = core::iter::from_fn(oldest);
        let all: Vec<_> = all
            .map(|(region, class)| (region.start() / UNIT, class.index()))
            .collect();
        assert_eq!(self.cap.held(), 0, "a region without a holder is counted");
        all
    }
}

#[test]
fn of_a_class_the_last_that_came_goes_first() {
    let mut table = Table::of(&[(1, 0, 0), (2, 1, 0), (4, 0, 0)]);
    assert_eq!(table.take(0), Some(4));
    assert_eq!(table.cap.held(), 3 * UNIT);
    assert_eq!(
        (table.dirty.count(class(0)), table.dirty.count(class(1))),
        (1, 1)
    );
    assert_eq!(table.drain(), [(1, 0), (2, 1)]);
}

#[test]
fn a_larger_region_is_split_and_its_rest_stays_in_its_place_and_as_old() {
    let mut table = Table::of(&[(1, 0, 0), (8, 3, 800), (16, 4, 0), (2, 1, 0)]);
    assert_eq!((table.take(0), table.take(1)), (Some(1), Some(2)));
    let before = table.cap.held();
    assert_eq!(table.take(0), Some(8), "the smallest that is larger");
    assert_eq!(table.cap.held(), before - UNIT);
    let oldest = table.dirty.take_oldest(&table.cap, |_| true);
    assert_eq!(oldest, Some((region(9, 800), class(0))));
    assert_eq!(table.drain(), [(10, 1), (12, 2), (16, 4)]);
}

#[test]
fn of_larger_regions_of_one_class_the_last_is_split() {
    let mut table = Table::of(&[(4, 2, 0), (8, 2, 0), (12, 2, 0)]);
    assert_eq!(table.take(1), Some(12));
    assert_eq!(table.take(1), Some(14), "its rest");
    assert_eq!(table.take(3), None, "smaller ones are not joined here");
    assert_eq!(table.drain(), [(4, 2), (8, 2)]);
}

#[test]
fn a_full_table_keeps_no_more_and_splits_nothing_that_would_not_fit() {
    let mut table = Table::of(&[(0, 2, 0)]);
    for at in 1..ENTRIES {
        assert!(table.keep(region(8 * at, 0), class(3), usize::MAX));
    }
    assert!(!table.keep(region(1, 0), class(0), usize::MAX));
    assert_eq!(table.take(0), None, "two pieces in the place of one");
    assert_eq!(table.take(1), Some(0), "one piece in its place");
    assert_eq!(table.take(1), Some(2));
    assert_eq!(table.take(0), None, "three pieces for two places");
    assert_eq!(table.take(1), Some(8 * (ENTRIES - 1)));
    assert_eq!(table.drain().len(), ENTRIES);
}

#[test]
fn beyond_the_cap_nothing_is_kept() {
    let mut table = Table::of(&[(1, 0, 0)]);
    assert!(!table.keep(region(2, 0), class(0), 2 * UNIT - 1));
    assert!(table.keep(region(2, 0), class(0), 2 * UNIT));
    assert_eq!(table.drain(), [(1, 0), (2, 0)]);
}

#[test]
fn a_region_is_exchanged_for_the_last_of_its_class_that_was_freed_later() {
    let mut table = Table::of(&[(1, 0, 1600), (2, 1, 9000), (3, 0, 3200), (5, 1, 9000)]);
    let mut exchange = |unit, freed| {
        let given = table
            .dirty
            .exchange_for_younger(region(unit, freed), class(0), 9600);
        given.start() / UNIT
    };
    assert_eq!(
        exchange(7, 3200),
        7,
        "as old as the last: nothing is gained"
    );
    assert_eq!(exchange(7, 6400), 7);
    assert_eq!(exchange(7, 800), 3);
    let held = table.cap.held();
    assert_eq!(held, 6 * UNIT);
    let none = table
        .dirty
        .exchange_for_younger(region(4, 0), class(2), 9600);
    assert_eq!(none.start() / UNIT, 4, "there is none of its class");
    assert_eq!(table.drain(), [(7, 0), (1, 0), (2, 1), (5, 1)]);
}

#[test]
fn the_oldest_is_taken_only_if_it_is_wanted() {
    let mut table = Table::of(&[(1, 0, 800), (2, 0, 8000), (3, 0, 800)]);
    let old = |region: Region| region.age(9600) >= 5000;
    let mut take = || {
        table
            .dirty
            .take_oldest(&table.cap, old)
            .map(|(region, _)| region)
    };
    assert_eq!(take(), Some(region(1, 800)));
    assert_eq!(take(), None, "the next is younger");
    assert_eq!(table.drain(), [(2, 0), (3, 0)]);
}
