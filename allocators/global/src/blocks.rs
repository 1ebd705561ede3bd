//! Checks of blocks of many sizes and alignments, and of zero-sized values.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, realloc};
use std::collections::BTreeSet;
use std::hint::black_box;

/// Block that is filled with a pattern.
struct Block {
    start: *mut u8,
    layout: Layout,
}

fn pattern(at: usize) -> u8 {
    (at * 31 + (at >> 8)) as u8
}

/// Returns the offsets of the bytes that tests write and check in a block of `size` bytes,
/// including its first and last byte.
fn places(size: usize) -> impl Iterator<Item = usize> {
    (0..size).step_by(61).chain(size.checked_sub(1))
}

impl Block {
    fn new(size: usize, alignment: usize, zeroed: bool) -> Self {
        let layout = Layout::from_size_align(size, alignment).expect("a layout that can be");
        let allocate = if zeroed { alloc_zeroed } else { alloc };
        // SAFETY: size zero is undefined for global allocators in general, but defined for the
        // allocators under test.
        let start = black_box(unsafe { allocate(layout) });
        let block = Self { start, layout };
        block.look_at_place();
        if zeroed {
            // SAFETY: the block has `size` bytes, which `alloc_zeroed` has initialised.
            assert!((0..size).all(|at| unsafe { start.add(at).read() } == 0));
        }
        block.fill();
        block
    }

    fn look_at_place(&self) {
        assert!(!self.start.is_null(), "{:?} is refused", self.layout);
        let alignment = self.layout.align();
        assert!(
            self.start.addr().is_multiple_of(alignment),
            "{:?}",
            self.layout
        );
    }

    fn fill(&self) {
        for at in places(self.layout.size()) {
            // SAFETY: the block belongs to this value, and `at` is below its size.
            unsafe { self.start.add(at).write(pattern(at)) };
        }
    }

    /// Checks the block's bytes that were written when it had `before` bytes.
    fn verify(&self, before: usize) {
        for at in places(before).filter(|&at| at < self.layout.size()) {
            // SAFETY: the block has more than `at` bytes, and this byte was written.
            assert_eq!(unsafe { self.start.add(at).read() }, pattern(at));
        }
    }

    fn resize(&mut self, size: usize) {
        let before = self.layout.size();
        // SAFETY: the block has this layout, and its old address is not used again. The new size
        // does not overflow when it is rounded up. Size zero is defined for the allocators under
        // test.
        self.start = black_box(unsafe { realloc(self.start, self.layout, size) });
        self.layout = Layout::from_size_align(size, self.layout.align()).expect("the same");
        self.look_at_place();
        self.verify(before);
        self.fill();
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.verify(self.layout.size());
        // SAFETY: the block has this layout, and is no longer used.
        unsafe { dealloc(self.start, self.layout) };
    }
}

const SIZES: [usize; 8] = [1, 7, 16, 100, 1000, 5000, 70_000, 150_000];

/// Checks blocks of every alignment up to 4 MiB: all allocating functions, zeroing, and contents
/// after `realloc`.
pub fn layouts() {
    for power in 0..=22 {
        // Large blocks have many pages to check, so use them only for some alignments.
        let large = (power % 4 == 0).then_some(3_000_000);
        for size in SIZES.into_iter().chain(large) {
            // Free a used block first, so that the zeroed block may reuse its memory.
            drop(Block::new(size, 1 << power, false));
            let mut plain = Block::new(size, 1 << power, false);
            let mut zeroed = Block::new(size, 1 << power, true);
            for other in [size + 1, size * 3, size / 2 + 1, 1, size] {
                plain.resize(other);
                zeroed.resize(other);
            }
        }
    }
}

/// Checks that zero-sized values use no memory, and that the allocator handles requests for zero
/// bytes.
pub fn empty() {
    let mut units = vec![Box::new(())];
    units.extend((0..100).map(|_| Box::new(())));
    assert_eq!(black_box(units).len(), 101);
    for length in [1_usize, 100, 10_000, 1_000_000] {
        let mut grown: Vec<u16> = black_box((0..length).map(|at| at as u16).collect());
        grown.clear();
        grown.shrink_to_fit();
        assert_eq!(grown.capacity(), 0);
        grown.push(7);
        assert_eq!(grown.into_boxed_slice().as_ref(), [7]);
    }
    let mut blocks: Vec<Block> = (0..1000)
        .map(|at| Block::new(0, 1 << (at % 8), at % 3 == 0))
        .collect();
    let addresses: BTreeSet<usize> = blocks.iter().map(|block| block.start.addr()).collect();
    assert_eq!(addresses.len(), blocks.len());
    for block in &mut blocks {
        block.resize(100);
        block.resize(0);
    }
}
