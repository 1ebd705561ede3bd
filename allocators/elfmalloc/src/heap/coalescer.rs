//! Blocks on their way back to slabs, gathered by slab: a bin's lock is taken once for several.

use core::ptr::null_mut;

use crate::size_class::SizeClass;
use crate::slabs::free_blocks::FreeBlocks;
use crate::units::descriptor::DESCRIPTOR;

/// Slabs that are gathered for at once.
const SETS: usize = 16;
/// The most blocks that are gathered for a slab.
const MOST: usize = 14;
/// The most bytes of blocks that are gathered for a slab; but one block always may be.
const BYTES: usize = 4 << 10;

/// The blocks of one slab.
#[derive(Debug)]
#[repr(C)]
struct Gathered {
    /// Address of its descriptor.
    slab: usize,
    class: SizeClass,
    count: u8,
    blocks: [*mut u8; MOST],
}

/// A thread's blocks on their way.
#[derive(Debug)]
pub struct Coalescer {
    sets: [Gathered; SETS],
}

impl Coalescer {
    /// No blocks.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            sets: [const {
                Gathered {
                    slab: 0,
                    class: SizeClass::NONE,
                    count: 0,
                    blocks: [null_mut(); MOST],
                }
            }; SETS],
        }
    }

    /// Adds a block of the slab whose descriptor has this address. `give` gets what goes back now: what was
    /// gathered for another slab in the same place, and what has become enough.
    pub fn add(
        &mut self,
        slab: usize,
        block: FreeBlocks<'_>,
        mut give: impl FnMut(FreeBlocks<'_>),
    ) {
        let class = block.class();
        let set = &mut self.sets[slab / DESCRIPTOR % SETS];
        if set.slab != slab || set.class != class {
            set.empty(&mut give);
            set.slab = slab;
            set.class = class;
        }
        set.blocks[usize::from(set.count)] = block.first();
        set.count += 1;
        if usize::from(set.count) >= enough(class) {
            set.empty(&mut give);
        }
    }

    /// Hands everything that was gathered to `give`.
    pub fn empty(&mut self, mut give: impl FnMut(FreeBlocks<'_>)) {
        for set in &mut self.sets {
            set.empty(&mut give);
        }
    }

    /// Forgets everything that was gathered.
    pub fn forget(&mut self) {
        for set in &mut self.sets {
            set.slab = 0;
            set.count = 0;
        }
    }
}

impl Default for Coalescer {
    fn default() -> Self {
        Self::new()
    }
}

impl Gathered {
    fn empty(&mut self, give: &mut impl FnMut(FreeBlocks<'_>)) {
        let count = usize::from(core::mem::take(&mut self.count));
        if count != 0 {
            // SAFETY: what was gathered are free blocks of the class, and now the set has none.
            give(unsafe { FreeBlocks::new(self.class, &mut self.blocks[..count]) });
        }
    }
}

/// How many blocks of a class are enough to go back.
fn enough(class: SizeClass) -> usize {
    (BYTES / class.size()).clamp(1, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ptr::without_provenance_mut;
    use std::vec::Vec;

    #[test]
    fn blocks_go_back_by_slab_when_there_are_enough_or_the_place_is_wanted() {
        let mut coalescer = Coalescer::new();
        let mut given: Vec<Vec<usize>> = Vec::new();
        let mut give = |mut blocks: FreeBlocks<'_>| {
            given.push(blocks.as_slice().iter().map(|block| block.addr()).collect());
        };
        let class = SizeClass::of(64);
        let mut add = |slab: usize, number: usize| {
            let mut block = [without_provenance_mut(number)];
            // SAFETY: nobody follows the pointers.
            let block = unsafe { FreeBlocks::new(class, &mut block) };
            coalescer.add(slab * DESCRIPTOR, block, &mut give);
        };
        add(1, 1);
        add(2, 2);
        add(1 + SETS, 3);
        for number in 4..4 + MOST {
            add(3, number);
        }
        coalescer.empty(&mut give);
        coalescer.empty(&mut give);
        let many: Vec<usize> = (4..4 + MOST).collect();
        assert_eq!(given, [&[1][..], &many, &[3], &[2]]);
    }

    #[test]
    fn little_is_gathered_of_large_blocks() {
        assert_eq!(enough(SizeClass::of(16)), MOST);
        assert_eq!(enough(SizeClass::of(2048)), 2);
        assert_eq!(enough(SizeClass::of(16384)), 1);
    }
}
