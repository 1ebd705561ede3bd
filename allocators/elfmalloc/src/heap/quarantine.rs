//! Quarantine: delays the reuse of freed blocks in the hardened variant.
//!
//! Short blocks are kept in groups of eight, in the order of their frees. When a group is full,
//! another group of its class is drawn at random. The blocks in that group leave, in the same or
//! reverse order at random, and new blocks fill it. So adjacent blocks that were freed together
//! stay together, and go back to their slab in one batch. A long block takes a random place, and
//! the block that it replaces leaves.

use core::ptr::{NonNull, null_mut};
use heapdrome_pages::atomic::{AtomicPtr, Ordering::AcqRel};

use crate::size_class::SizeClass;
use crate::slabs::shape::{SHORT, is_long};
use crate::units::class_map::{ClassMap, Window};

/// Number of blocks in a group. Their pointers fill a cache line.
pub const GROUP: usize = 8;
/// Number of groups of each short class.
const GROUPS: usize = 5;
/// Number of short classes, including class 0.
const SHORT_CLASSES: usize = SizeClass::of(SHORT).number() + 1;
/// Number of the largest class with its own places. Larger classes share places.
const LAST_OWN: usize = SizeClass::of(16 << 10).number();
/// Number of places of each long class. Kept small, because quarantined blocks are unusable memory.
const LONG_PLACES: usize = 8;
/// Number of places that all larger classes share.
const SHARED: usize = 16;
/// Number of places in [`Strays`].
const STRAYS: usize = 64;

type Group = [*mut u8; GROUP];
type Groups = [Group; GROUPS];

/// Quarantine of one thread.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Quarantine {
    groups: [Groups; SHORT_CLASSES],
    /// Index of the place for the next block of each class, counted over the places of all groups.
    next: [u32; SHORT_CLASSES],
    random: u64,
    /// Location of the class map, for the fast path of `free`.
    window: Window,
    long: [[*mut u8; LONG_PLACES]; LAST_OWN + 1 - SHORT_CLASSES],
    shared: [*mut u8; SHARED],
}

/// Returns whether a class has its own places; false for [`SizeClass::NONE`], for
/// [`SizeClass::LARGE`], and for the classes that share places.
#[inline(always)]
#[must_use]
pub const fn has_places(class: SizeClass) -> bool {
    class.number().wrapping_sub(1) < LAST_OWN
}

/// Long class with [its own places](has_places).
#[derive(Clone, Copy, Debug)]
pub struct LongClass(SizeClass);

impl LongClass {
    /// Returns the class; `None` if it is short or has no places of its own.
    #[inline(always)]
    #[must_use]
    pub const fn new(class: SizeClass) -> Option<Self> {
        if has_places(class) && is_long(class) {
            Some(Self(class))
        } else {
            None
        }
    }
}

/// Returns the index of the first place in the groups of a class.
const fn start_of(class: usize) -> u32 {
    (class * GROUPS * GROUP) as u32
}

impl Quarantine {
    /// Creates an empty quarantine. `seed` is the seed of its random numbers.
    ///
    /// # Safety
    ///
    /// `memory` is zero, large enough, aligned to 64, and used by no other code.
    pub unsafe fn write(memory: NonNull<u8>, seed: u64) -> NonNull<Self> {
        let mut quarantine: NonNull<Self> = memory.cast();
        // SAFETY: by this function's contract, no other code uses the memory, which is zero, large
        // enough and aligned. Zero is a valid value of every field.
        let place = unsafe { quarantine.as_mut() };
        place.window = Window::NONE;
        place.random = seed | 1;
        place.reset();
        quarantine
    }

    /// Sets the location of the class map.
    pub(crate) fn set_map(&mut self, map: &ClassMap) {
        self.window = map.window();
    }

    /// Returns the class of the blocks at `address`; `None` if the slow path must determine it.
    #[inline(always)]
    pub(crate) fn class_at(&self, address: usize) -> Option<SizeClass> {
        self.window.find(address)
    }

    fn reset(&mut self) {
        for (class, next) in self.next.iter_mut().enumerate() {
            *next = start_of(class);
        }
    }

    /// Returns a pseudo-random number (Knuth's linear congruential generator). Its upper bits are
    /// hard to predict for a program that has seen only a few numbers.
    #[inline(always)]
    fn draw(&mut self) -> usize {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 40) as usize
    }

    /// Adds a short block. Returns whether its group is now full.
    ///
    /// # Safety
    ///
    /// The class is short, and after each full group of the class, [`next_group`](Self::next_group)
    /// was called.
    #[inline(always)]
    #[must_use]
    pub unsafe fn put(&mut self, class: SizeClass, block: *mut u8) -> bool {
        debug_assert!(has_places(class) && !is_long(class));
        // SAFETY: the class is short, so it has groups. The current group has room, because
        // `next_group` was called after the last full group.
        unsafe {
            let next = self.next.get_unchecked_mut(class.number());
            let place = *next as usize;
            *next += 1;
            let places = self.groups.as_flattened_mut().as_flattened_mut();
            *places.get_unchecked_mut(place) = block;
            place % GROUP == GROUP - 1
        }
    }

    /// Draws the next group to fill, after a group of `class` is full. Returns the blocks in the
    /// drawn group, if any.
    #[must_use]
    pub fn next_group(&mut self, class: SizeClass) -> Option<Group> {
        let draw = self.draw();
        let class = class.number();
        let end = (self.next[class] - start_of(class)) as usize / GROUP;
        // The full group precedes `end`. Any other group may be drawn.
        let index = (end + draw % (GROUPS - 1)) % GROUPS;
        self.next[class] = start_of(class) + (index * GROUP) as u32;
        let group = &self.groups[class][index];
        // Zero, or a mask that reverses the order of the places.
        let turn = (draw >> 16 & 1).wrapping_neg() % GROUP;
        let blocks = core::array::from_fn(|place| group[(place ^ turn) % GROUP]);
        (!group[0].is_null()).then_some(blocks)
    }

    /// Adds a long block. Returns the block that it replaces, or null.
    #[inline(always)]
    pub fn exchange(&mut self, class: LongClass, block: *mut u8) -> *mut u8 {
        let index = self.draw() % LONG_PLACES;
        // SAFETY: a `LongClass` is above all short classes and at most `LAST_OWN`, and the index is
        // below the number of its places.
        let place = unsafe {
            self.long
                .get_unchecked_mut(class.0.number() - SHORT_CLASSES)
                .get_unchecked_mut(index)
        };
        core::mem::replace(place, block)
    }

    /// Adds a block of a class without its own places. Returns the block that it replaces, of any
    /// such class, or null.
    pub fn exchange_shared(&mut self, block: *mut u8) -> *mut u8 {
        let index = self.draw() % SHARED;
        core::mem::replace(&mut self.shared[index], block)
    }

    /// Removes all blocks, and passes each to `give`.
    pub fn empty(&mut self, mut give: impl FnMut(*mut u8)) {
        for (class, groups) in self.groups.iter_mut().enumerate() {
            // In the group that is being filled, the places behind the last block still hold
            // pointers to blocks that have left.
            let next = (self.next[class] - start_of(class)) as usize;
            let left = groups.as_flattened_mut().iter_mut().skip(next);
            left.take(GROUP - next % GROUP)
                .for_each(|place| *place = null_mut());
        }
        self.reset();
        let short = self.groups.iter_mut().flatten().flatten();
        let places = short.chain(self.long.iter_mut().flatten());
        for place in places.chain(&mut self.shared) {
            let block = core::mem::replace(place, null_mut());
            if !block.is_null() {
                give(block);
            }
        }
    }
}

/// Quarantine for blocks of all classes that were freed by threads without their own quarantine.
#[derive(Debug)]
pub struct Strays([AtomicPtr<u8>; STRAYS]);

impl Strays {
    /// Creates an empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self([const { AtomicPtr::new(null_mut()) }; STRAYS])
    }

    /// Puts a block into the place that `draw` selects. Returns the block that it replaces, or
    /// null.
    pub fn exchange(&self, draw: u64, block: *mut u8) -> *mut u8 {
        // Release: publishes the fill bytes of this block. Acquire: pairs with the release of the
        // thread that stored the replaced block.
        self.0[draw as usize % STRAYS].swap(block, AcqRel)
    }
}

impl Default for Strays {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ptr::without_provenance_mut;
    use std::boxed::Box;
    use std::vec::Vec;

    fn quarantine() -> Box<Quarantine> {
        let mut memory = Box::<Quarantine>::new_zeroed();
        // SAFETY: the memory is new, zero, and has the size and alignment of a quarantine.
        unsafe {
            Quarantine::write(NonNull::from(&mut *memory).cast(), 5);
            memory.assume_init()
        }
    }

    #[test]
    fn blocks_come_out_once_later_and_in_another_order() {
        const BLOCKS: usize = if cfg!(miri) { 500 } else { 5000 };
        let mut quarantine = quarantine();
        let mut out = Vec::new();
        let class = SizeClass::of(64);
        for number in 1..=BLOCKS {
            // SAFETY: the class is short, and `next_group` is called after each full group.
            if unsafe { quarantine.put(class, without_provenance_mut(number)) } {
                let group = quarantine.next_group(class).into_iter().flatten();
                let group: Vec<_> = group.map(|other| other.addr()).collect();
                assert!(group.iter().all(|other| other + GROUP <= number));
                out.extend(group);
            }
        }
        assert!(out.len() >= BLOCKS - GROUPS * GROUP && out.len() < BLOCKS);
        let ascending = out.windows(2).filter(|pair| pair[0] < pair[1]).count();
        assert!(
            (out.len() / 4..out.len() * 3 / 4).contains(&ascending),
            "{ascending}"
        );
        quarantine.empty(|block| out.push(block.addr()));
        out.sort_unstable();
        assert!(out.into_iter().eq(1..=BLOCKS));
    }

    #[test]
    fn a_quarantine_that_was_emptied_holds_nothing() {
        let mut quarantine = quarantine();
        let class = SizeClass::of(SHORT);
        for number in 1..=100 {
            // SAFETY: the class is short, and `next_group` is called after each full group.
            if unsafe { quarantine.put(class, without_provenance_mut(number)) } {
                let _ = quarantine.next_group(class);
            }
        }
        quarantine.empty(|_| ());
        quarantine.empty(|block| panic!("{block:?}"));
        // SAFETY: the class is short, and the group is empty.
        assert!(!unsafe { quarantine.put(class, without_provenance_mut(1)) });
    }

    #[test]
    fn few_large_blocks_are_kept() {
        let mut quarantine = quarantine();
        let mut out = 0;
        let class = LongClass::new(SizeClass::of(5000)).expect("5000 bytes are long");
        for number in 1..=1000 {
            let place = without_provenance_mut(number);
            out += usize::from(!quarantine.exchange(class, place).is_null());
            out += usize::from(!quarantine.exchange_shared(place).is_null());
        }
        assert!(out >= 2000 - LONG_PLACES - SHARED);
    }

    #[test]
    fn a_stray_block_comes_out_for_another_in_the_same_place() {
        let strays = Strays::new();
        let block = without_provenance_mut;
        for number in 1..=STRAYS {
            assert!(strays.exchange(number as u64, block(number)).is_null());
        }
        assert_eq!(strays.exchange(3, block(100)).addr(), 3);
        assert_eq!(strays.exchange(STRAYS as u64 + 3, block(101)).addr(), 100);
    }

    #[test]
    fn only_classes_of_slabs_have_places() {
        for size in [1, 16, 1024, 16 << 10] {
            assert!(has_places(SizeClass::of(size)));
        }
        assert!(!has_places(SizeClass::NONE) && !has_places(SizeClass::LARGE));
        assert!(!has_places(SizeClass::of((16 << 10) + 1)));
        for size in [SHORT, (16 << 10) + 1] {
            assert!(LongClass::new(SizeClass::of(size)).is_none());
        }
    }
}
