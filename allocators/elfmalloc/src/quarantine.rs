//! Where the hardened variant keeps freed blocks before they are allocated again: a freed block takes a
//! random place, and what lay there goes on.

use core::ptr::null_mut;

/// Blocks of up to this size have places of their own.
const SMALL: usize = 1024;
const SMALL_PLACES: usize = 256;
const PLACES: usize = 16;

/// The blocks that a thread has freed of late.
#[derive(Debug)]
pub struct Quarantine {
    random: u64,
    small: [*mut u8; SMALL_PLACES],
    others: [*mut u8; PLACES],
}

impl Quarantine {
    /// Nothing in it; `seed` decides on the order.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self {
            random: seed | 1,
            small: [null_mut(); SMALL_PLACES],
            others: [null_mut(); PLACES],
        }
    }

    /// Puts a block of `size` bytes in; returns another that was there, or null.
    pub fn exchange(&mut self, size: usize, block: *mut u8) -> *mut u8 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let random = (self.random >> 32) as usize;
        let place = if size <= SMALL {
            &mut self.small[random % SMALL_PLACES]
        } else {
            &mut self.others[random % PLACES]
        };
        core::mem::replace(place, block)
    }

    /// Takes all blocks out.
    pub fn empty(&mut self, mut give: impl FnMut(*mut u8)) {
        for place in self.small.iter_mut().chain(&mut self.others) {
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
        for number in 1..=5000 {
            let other = quarantine.exchange(64, without_provenance_mut(number));
            assert_ne!(other.addr(), number);
            out.extend((!other.is_null()).then(|| other.addr()));
        }
        assert!(out.len() >= 5000 - SMALL_PLACES && out.len() < 5000);
        let ascending = out.windows(2).filter(|pair| pair[0] < pair[1]).count();
        assert!(ascending < out.len() * 3 / 4, "{ascending}");
        quarantine.empty(|block| out.push(block.addr()));
        out.sort_unstable();
        assert!(out.into_iter().eq(1..=5000));
    }

    #[test]
    fn few_large_blocks_are_kept() {
        let mut quarantine = Quarantine::new(5);
        let mut out = 0;
        for number in 1..=1000 {
            let other = quarantine.exchange(SMALL + 1, without_provenance_mut(number));
            out += usize::from(!other.is_null());
        }
        assert!(out >= 1000 - PLACES);
    }
}
