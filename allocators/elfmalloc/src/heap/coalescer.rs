//! Blocks on their way back to slabs, gathered by slab: a bin's lock is taken once for several.

use core::ptr::null_mut;

use crate::size_class::SizeClass;
use crate::slabs::slab::Slab;

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
    slab: *mut Slab,
    class: SizeClass,
    count: u8,
    blocks: [*mut u8; MOST],
}

/// A thread's blocks on their way. Zero memory is one without blocks.
#[derive(Debug)]
pub struct Coalescer {
    sets: [Gathered; SETS],
}

impl Coalescer {
    /// Adds a block of `slab`, whose blocks have `class`. `give` gets what goes back now: what was
    /// gathered for another slab in the same place, and what has become enough.
    pub fn add(
        &mut self,
        slab: *mut Slab,
        class: SizeClass,
        block: *mut u8,
        mut give: impl FnMut(SizeClass, &mut [*mut u8]),
    ) {
        let set = &mut self.sets[slab.addr() / size_of::<Slab>() % SETS];
        if set.slab != slab || set.class != class {
            set.empty(&mut give);
            set.slab = slab;
            set.class = class;
        }
        set.blocks[usize::from(set.count)] = block;
        set.count += 1;
        if usize::from(set.count) >= enough(class) {
            set.empty(&mut give);
        }
    }

    /// Hands everything that was gathered to `give`.
    pub fn empty(&mut self, mut give: impl FnMut(SizeClass, &mut [*mut u8])) {
        for set in &mut self.sets {
            set.empty(&mut give);
        }
    }

    /// Forgets everything that was gathered.
    pub fn forget(&mut self) {
        for set in &mut self.sets {
            set.slab = null_mut();
            set.count = 0;
        }
    }
}

impl Gathered {
    fn empty(&mut self, give: &mut impl FnMut(SizeClass, &mut [*mut u8])) {
        let count = usize::from(core::mem::take(&mut self.count));
        if count != 0 {
            give(self.class, &mut self.blocks[..count]);
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
        // SAFETY: zero is a coalescer without blocks.
        let mut coalescer: Coalescer = unsafe { core::mem::zeroed() };
        let mut given: Vec<Vec<usize>> = Vec::new();
        let mut give = |_: SizeClass, blocks: &mut [*mut u8]| {
            given.push(blocks.iter().map(|block| block.addr()).collect());
        };
        let class = SizeClass::of(64);
        let slab = |number: usize| without_provenance_mut::<Slab>(number * size_of::<Slab>());
        let block = without_provenance_mut::<u8>;
        coalescer.add(slab(1), class, block(1), &mut give);
        coalescer.add(slab(2), class, block(2), &mut give);
        coalescer.add(slab(1 + SETS), class, block(3), &mut give);
        for number in 4..4 + MOST {
            coalescer.add(slab(3), class, block(number), &mut give);
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
