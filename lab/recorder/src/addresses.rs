//! Finds the live block at an address.

use rustc_hash::FxHashMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Number of the block in the trace; `None` if the process inherited the block.
    pub number: Option<u64>,
    /// Bytes that were requested.
    pub size: u64,
}

/// Live blocks of a process by address: a hash table with open addressing and linear probing.
/// Removing an entry shifts later entries back, so the table needs no tombstones (Knuth, The Art of
/// Computer Programming 3, 6.4, algorithm R).
#[derive(Clone, Debug)]
pub(crate) struct Addresses {
    slots: Vec<Slot>,
    /// Binary logarithm of the number of groups.
    group_bits: u32,
    live: usize,
    /// Sizes that do not fit into a slot, by address.
    large: FxHashMap<u64, u64>,
}

/// An address with the number and the size of its block; all zeros if the slot is free. Four slots
/// fill one cache line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Slot {
    /// The lowest 16 bits of the number, above the 48 bits of the address.
    low: u64,
    /// The 32 bits of the size, above the highest 32 bits of the number.
    high: u64,
}

/// Number of bits of an address.
const ADDRESS_BITS: u32 = 48;
/// Number of bits of a block's number that share a word with the address.
const LOW_BITS: u32 = u64::BITS - ADDRESS_BITS;
/// Number of bits of a block's number.
const NUMBER_BITS: u32 = 48;
/// Block number that marks an inherited block.
const INHERITED: u64 = (1 << NUMBER_BITS) - 1;
/// Value of a slot's size field if the actual size is in [`Addresses::large`].
const LARGE: u64 = u32::MAX as u64;

/// Number of lowest bits of an address that are zero for most blocks.
const GRANULE_BITS: u32 = 4;
/// Number of bits that select a slot within a group. Blocks of the same 256 bytes share a group,
/// and programs allocate and free runs of neighbouring blocks, so one cache line serves several
/// look-ups.
const GROUP_BITS: u32 = 4;
/// Binary logarithm of the number of groups of the smallest table.
const FEWEST_GROUPS: u32 = 4;

impl Slot {
    fn new(address: u64, block: Block) -> Self {
        let number = block.number.unwrap_or(INHERITED);
        Self {
            low: address | number << ADDRESS_BITS,
            high: number >> LOW_BITS & u64::from(u32::MAX) | block.size.min(LARGE) << u32::BITS,
        }
    }

    #[inline]
    fn is_free(self) -> bool {
        self.address() == 0
    }

    #[inline]
    fn address(self) -> u64 {
        self.low & ((1 << ADDRESS_BITS) - 1)
    }

    #[inline]
    fn block(self, large: &FxHashMap<u64, u64>) -> Block {
        let number = self.low >> ADDRESS_BITS | (self.high & u64::from(u32::MAX)) << LOW_BITS;
        let size = match self.high >> u32::BITS {
            LARGE => large.get(&self.address()).copied().unwrap_or(LARGE),
            size => size,
        };
        Block {
            number: (number != INHERITED).then_some(number),
            size,
        }
    }
}

impl Default for Addresses {
    fn default() -> Self {
        Self {
            slots: vec![Slot::default(); 1 << (FEWEST_GROUPS + GROUP_BITS)],
            group_bits: FEWEST_GROUPS,
            live: 0,
            large: FxHashMap::default(),
        }
    }
}

impl Addresses {
    pub(crate) fn len(&self) -> usize {
        self.live
    }

    /// Returns the total size of all blocks in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let live = self.slots.iter().filter(|slot| !slot.is_free());
        live.map(|slot| slot.block(&self.large).size).sum()
    }

    /// Returns the blocks that a child inherits: those with numbers below `below`, and those that
    /// this process inherited itself.
    pub(crate) fn inherited(&self, below: u64) -> Self {
        let mut child = Self::default();
        for slot in self.slots.iter().filter(|slot| !slot.is_free()) {
            let Block { number, size } = slot.block(&self.large);
            if number.is_none_or(|number| number < below) {
                child.insert(slot.address(), Block { number: None, size });
            }
        }
        child
    }

    /// Adds a block, and returns the block previously recorded at this address. Ignores address 0.
    #[inline]
    pub(crate) fn insert(&mut self, address: u64, block: Block) -> Option<Block> {
        if address == 0 {
            return None;
        }
        let place = self.find(address);
        let slot = self.slots[place];
        let old = (!slot.is_free()).then(|| slot.block(&self.large));
        self.slots[place] = Slot::new(address, block);
        if block.size >= LARGE {
            self.large.insert(address, block.size);
        } else if old.is_some_and(|old| old.size >= LARGE) {
            self.large.remove(&address);
        }
        if old.is_none() {
            self.live += 1;
            if self.live > self.slots.len() / 2 {
                self.grow();
            }
        }
        old
    }

    /// Removes the block at an address, and returns it.
    #[inline]
    pub(crate) fn remove(&mut self, address: u64) -> Option<Block> {
        let place = self.find(address);
        let slot = self.slots[place];
        if slot.is_free() {
            return None;
        }
        let block = slot.block(&self.large);
        if block.size >= LARGE {
            self.large.remove(&address);
        }
        self.live -= 1;
        self.close(place);
        Some(block)
    }

    /// Prefetches the slot of an address that will be looked up soon.
    #[inline]
    pub(crate) fn prefetch(&self, address: u64) {
        let slot = &raw const self.slots[self.home(address)];
        #[cfg(target_arch = "x86_64")]
        // SAFETY: every x86-64 processor has the instruction, which changes no memory and cannot
        // fault.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(slot.cast());
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: the instruction changes no memory and cannot fault.
        unsafe {
            std::arch::asm!("prfm pldl1keep, [{}]", in(reg) slot, options(nostack, readonly));
        }
    }

    /// Returns the index of the slot at which the search for an address begins.
    #[inline]
    fn home(&self, address: u64) -> usize {
        let granule = address >> GRANULE_BITS;
        // 2^64 divided by the golden ratio (Knuth, The Art of Computer Programming 3, 6.4).
        let mixed = (granule >> GROUP_BITS).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let group = mixed >> (u64::BITS - self.group_bits);
        (group << GROUP_BITS | granule & ((1 << GROUP_BITS) - 1)) as usize
    }

    /// Returns the index of an address's slot, or of the free slot where the address belongs.
    #[inline]
    fn find(&self, address: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut place = self.home(address);
        // The loop ends, because at least half of the slots are free.
        while !self.slots[place].is_free() && self.slots[place].address() != address {
            place = (place + 1) & mask;
        }
        place
    }

    /// Frees a slot, and shifts back later entries that a search would no longer find.
    #[inline]
    fn close(&mut self, mut hole: usize) {
        let mask = self.slots.len() - 1;
        let mut place = hole;
        loop {
            place = (place + 1) & mask;
            let slot = self.slots[place];
            if slot.is_free() {
                break;
            }
            // An entry may move into the hole if a search for it reaches the hole: the hole is the
            // entry's home, or lies between the home and the entry's place.
            let home = self.home(slot.address());
            if place.wrapping_sub(home) & mask >= place.wrapping_sub(hole) & mask {
                self.slots[hole] = slot;
                hole = place;
            }
        }
        self.slots[hole] = Slot::default();
    }

    #[cold]
    fn grow(&mut self) {
        self.group_bits += 1;
        let free = vec![Slot::default(); self.slots.len() * 2];
        for slot in std::mem::replace(&mut self.slots, free) {
            if !slot.is_free() {
                let place = self.find(slot.address());
                self.slots[place] = slot;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// Returns the next pseudorandom number (Marsaglia's xorshift).
    fn next(state: &mut u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    }

    #[test]
    fn the_table_holds_what_a_map_holds() {
        let (mut table, mut map) = (Addresses::default(), HashMap::new());
        let mut state = 1;
        for number in 0..200_000_u64 {
            let word = next(&mut state);
            // Use few regions, so that blocks have neighbours. Addresses are multiples of 8 but not
            // of 16.
            let address = ((word % 7 + 1) << 40) | (((word >> 8) % 0x4000) << 3) | 8;
            if word & (1 << 60) == 0 {
                let size = [1, 100, LARGE - 1, LARGE, 1 << 40][(word >> 32) as usize % 5];
                let number = (word & (1 << 61) == 0).then_some(number << 20);
                let block = Block { number, size };
                assert_eq!(table.insert(address, block), map.insert(address, block));
            } else {
                assert_eq!(table.remove(address), map.remove(&address));
            }
            assert_eq!(table.len(), map.len());
        }
        assert!(table.len() > 10_000);
        assert_eq!(
            table.bytes(),
            map.values().map(|block| block.size).sum::<u64>()
        );
        let none = map.values().filter(|block| block.number.is_none());
        assert_eq!(table.inherited(0).len(), none.count());
        let mut child = table.inherited(u64::MAX);
        assert_eq!(child.bytes(), table.bytes());
        for (address, block) in map {
            let number = None;
            assert_eq!(child.remove(address), Some(Block { number, ..block }));
            assert_eq!(table.remove(address), Some(block));
        }
        assert_eq!((table.len(), table.large.len(), child.len()), (0, 0, 0));
    }
}
