//! Where the hardened variant keeps freed blocks before they are allocated again: a freed block takes a
//! random place among those of its class, and what lay there goes on.

use core::ptr::null_mut;

use crate::size_class::SizeClass;

/// The largest class that has places of its own: 16 KiB. Larger ones share some.
const LAST_OWN: usize = SizeClass::of(16 << 10).number();
/// Places of each class.
const PLACES: usize = 32;
/// How many of them a class of long blocks uses: what lies here is memory that nobody can use.
const LONG_PLACES: usize = 8;
/// Places that larger classes share.
const SHARED: usize = 16;

/// The blocks that a thread has freed of late.
#[derive(Debug)]
pub struct Quarantine {
    random: u64,
    places: [[*mut u8; PLACES]; LAST_OWN + 1],
    shared: [*mut u8; SHARED],
}

/// Whether a class has places of its own; true for no class that is not one of slabs.
#[inline(always)]
#[must_use]
pub const fn has_places(class: SizeClass) -> bool {
    class.number().wrapping_sub(1) < LAST_OWN
}

impl Quarantine {
    /// Nothing in it; `seed` decides on the order.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self {
            random: seed | 1,
            places: [[null_mut(); PLACES]; LAST_OWN + 1],
            shared: [null_mut(); SHARED],
        }
    }

    /// A number whose upper bits nobody foresees without having seen many (Knuth's linear congruence).
    #[inline(always)]
    fn draw(&mut self) -> usize {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 40) as usize
    }

    /// Puts a block of a class that [has places](has_places) in; returns another that was there, or
    /// null. Blocks are `long` or not by their class.
    #[inline(always)]
    pub fn exchange(&mut self, class: SizeClass, long: bool, block: *mut u8) -> *mut u8 {
        debug_assert!(has_places(class));
        let count = if long { LONG_PLACES } else { PLACES };
        let index = self.draw() % count;
        // SAFETY: the class has places, and the index is below their number.
        let place = unsafe {
            self.places
                .get_unchecked_mut(class.number())
                .get_unchecked_mut(index)
        };
        core::mem::replace(place, block)
    }

    /// Puts a block of a larger class in; returns another, of any such class, or null.
    pub fn exchange_shared(&mut self, block: *mut u8) -> *mut u8 {
        let index = self.draw() % SHARED;
        core::mem::replace(&mut self.shared[index], block)
    }

    /// Takes all blocks out.
    pub fn empty(&mut self, mut give: impl FnMut(*mut u8)) {
        let places = self.places.iter_mut().flatten();
        for place in places.chain(&mut self.shared) {
            let block = core::mem::replace(place, null_mut());
            if !block.is_null() {
                give(block);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ptr::without_provenance_mut;
    use std::vec::Vec;

    #[test]
    fn blocks_come_out_once_later_and_in_another_order() {
        let mut quarantine = Quarantine::new(5);
        let mut out = Vec::new();
        let class = SizeClass::of(64);
        let count = if cfg!(miri) { 300 } else { 5000 };
        for number in 1..=count {
            let other = quarantine.exchange(class, false, without_provenance_mut(number));
            assert_ne!(other.addr(), number);
            out.extend((!other.is_null()).then(|| other.addr()));
        }
        assert!(out.len() >= count - PLACES && out.len() < count);
        let ascending = out.windows(2).filter(|pair| pair[0] < pair[1]).count();
        assert!(ascending < out.len() * 3 / 4, "{ascending}");
        quarantine.empty(|block| out.push(block.addr()));
        out.sort_unstable();
        assert!(out.into_iter().eq(1..=count));
    }

    #[test]
    fn few_large_blocks_are_kept() {
        let mut quarantine = Quarantine::new(5);
        let mut out = 0;
        let class = SizeClass::of(5000);
        for number in 1..=1000 {
            let place = without_provenance_mut(number);
            out += usize::from(!quarantine.exchange(class, true, place).is_null());
            out += usize::from(!quarantine.exchange_shared(place).is_null());
        }
        assert!(out >= 2000 - LONG_PLACES - SHARED);
    }

    #[test]
    fn only_classes_of_slabs_have_places() {
        for size in [1, 16, 1024, 16 << 10] {
            assert!(has_places(SizeClass::of(size)));
        }
        assert!(!has_places(SizeClass::NONE) && !has_places(SizeClass::LARGE));
        assert!(!has_places(SizeClass::of((16 << 10) + 1)));
    }
}
