//! Coalescer: groups freed blocks by slab, so that several blocks are given back each time their
//! bin is locked.
//!
//! All fields are cells, and the callback `give` receives a copy of the blocks. So `give` may add
//! blocks to the same coalescer.

use core::cell::Cell;
use core::ptr::null_mut;

use crate::size_class::SizeClass;
use crate::slabs::free_blocks::{FreeBlock, FreeBlocks};
use crate::units::descriptor::DESCRIPTOR;

/// Number of sets, each of which gathers the blocks of one slab.
const SETS: usize = 16;
/// Maximum number of blocks that are gathered for a slab.
const MOST: usize = 14;
/// Maximum number of bytes of blocks that are gathered for a slab; a single block may be larger.
const BYTES: usize = 4 << 10;

/// Gathered blocks of one slab.
#[derive(Debug)]
#[repr(C)]
struct Gathered {
    /// Address of the slab's descriptor.
    slab: Cell<usize>,
    class: Cell<SizeClass>,
    count: Cell<u8>,
    blocks: [Cell<*mut u8>; MOST],
}

/// Blocks that one thread has freed and not yet given back to their slabs.
#[derive(Debug)]
pub struct Coalescer {
    sets: [Gathered; SETS],
}

// A coalescer fills one block of the allocator's own memory, whose block sizes are powers of two.
const _: () = assert!(size_of::<Coalescer>() == 2048);

impl Coalescer {
    /// Creates an empty coalescer.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            sets: [const {
                Gathered {
                    slab: Cell::new(0),
                    class: Cell::new(SizeClass::NONE),
                    count: Cell::new(0),
                    blocks: [const { Cell::new(null_mut()) }; MOST],
                }
            }; SETS],
        }
    }

    /// Adds a block of the slab whose descriptor lies at address `slab`. If another slab occupies
    /// the same set, first passes that slab's blocks to `give`. Passes this slab's blocks to `give`
    /// once enough are gathered.
    pub fn add(&self, slab: usize, block: FreeBlock, give: impl Fn(FreeBlocks<'_>)) {
        let class = block.class();
        let set = &self.sets[slab / DESCRIPTOR % SETS];
        while set.slab.get() != slab || set.class.get() != class {
            set.empty(&give);
            // If the set is not empty here, `give` has added blocks to it.
            if set.count.get() == 0 {
                set.slab.set(slab);
                set.class.set(class);
            }
        }
        let count = set.count.get();
        set.blocks[usize::from(count)].set(block.as_ptr());
        set.count.set(count + 1);
        if usize::from(count) + 1 >= enough(class) {
            set.empty(&give);
        }
    }

    /// Passes all gathered blocks to `give`.
    pub fn empty(&self, give: impl Fn(FreeBlocks<'_>)) {
        for set in &self.sets {
            set.empty(&give);
        }
    }

    /// Discards all gathered blocks without giving them back.
    pub fn forget(&self) {
        for set in &self.sets {
            set.count.set(0);
        }
    }
}

impl Default for Coalescer {
    fn default() -> Self {
        Self::new()
    }
}

impl Gathered {
    fn empty(&self, give: &impl Fn(FreeBlocks<'_>)) {
        let count = usize::from(self.count.take());
        if count != 0 {
            let mut blocks = self.blocks.each_ref().map(Cell::get);
            // SAFETY: the gathered blocks are free blocks of the class. The set's count is 0 now,
            // so they are on no other list.
            give(unsafe { FreeBlocks::new(self.class.get(), &mut blocks[..count]) });
        }
    }
}

/// Returns the number of blocks of `class` that a set gathers before it gives them back to their
/// slab.
fn enough(class: SizeClass) -> usize {
    (BYTES / class.size()).clamp(1, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::RefCell;
    use core::num::NonZero;
    use core::ptr::NonNull;
    use std::vec::Vec;

    /// Returns a block of 64 bytes whose address encodes `number`.
    fn block(number: usize) -> FreeBlock {
        let address = NonZero::new(number + 1).expect("a number");
        // SAFETY: the pointers are compared and never followed.
        unsafe { FreeBlock::new(SizeClass::of(64), NonNull::without_provenance(address)) }
    }

    /// Returns the numbers that were passed to [`block`] for these blocks.
    fn numbers(mut blocks: FreeBlocks<'_>) -> Vec<usize> {
        let blocks = blocks.as_slice().iter();
        blocks.map(|block| block.addr() - 1).collect()
    }

    #[test]
    fn blocks_go_back_by_slab_when_there_are_enough_or_the_place_is_wanted() {
        let coalescer = Coalescer::new();
        let given: RefCell<Vec<Vec<usize>>> = RefCell::default();
        let give = |blocks: FreeBlocks<'_>| given.borrow_mut().push(numbers(blocks));
        let add = |slab: usize, number: usize| {
            coalescer.add(slab * DESCRIPTOR, block(number), give);
        };
        add(1, 1);
        add(2, 2);
        add(1 + SETS, 3);
        for number in 4..4 + MOST {
            add(3, number);
        }
        coalescer.empty(give);
        coalescer.empty(give);
        let many: Vec<usize> = (4..4 + MOST).collect();
        assert_eq!(given.take(), [&[1][..], &many, &[3], &[2]]);
    }

    #[test]
    fn code_that_gives_blocks_back_may_add_and_empty() {
        let coalescer = Coalescer::new();
        let given: RefCell<Vec<usize>> = RefCell::default();
        let later = RefCell::new((100..100 + 2 * MOST).rev().collect::<Vec<_>>());
        // Each time blocks are given back, two more are freed: one of slab 1 and one of slab 1 +
        // `SETS`, which map to the same set.
        let give = |blocks: FreeBlocks<'_>| {
            for slab in [1, 1 + SETS] {
                let next = later.borrow_mut().pop();
                if let Some(number) = next {
                    coalescer.add(slab * DESCRIPTOR, block(number), |blocks| {
                        given.borrow_mut().extend(numbers(blocks));
                    });
                }
            }
            given.borrow_mut().extend(numbers(blocks));
        };
        for number in 0..2 * MOST {
            let slab = 1 + number % 3 / 2 * SETS;
            coalescer.add(slab * DESCRIPTOR, block(number), give);
        }
        coalescer.empty(give);
        coalescer.empty(give);
        let mut given = given.take();
        given.sort_unstable();
        let left = later.borrow().len();
        assert!(
            given
                .into_iter()
                .eq((0..2 * MOST).chain(100..100 + 2 * MOST - left))
        );
    }

    #[test]
    fn little_is_gathered_of_large_blocks() {
        assert_eq!(enough(SizeClass::of(16)), MOST);
        assert_eq!(enough(SizeClass::of(2048)), 2);
        assert_eq!(enough(SizeClass::of(16384)), 1);
    }
}
