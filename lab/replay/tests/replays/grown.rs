//! Tests the number of pages that a replay writes in a resized block.

use std::sync::Mutex;

use heapdrome_replay::{Heap, Libc, Speed, Touch, replay};
use heapdrome_trace::Operation;

use crate::compiled;
use crate::program::Program;

const PAGE: usize = 4096;
const MIB: usize = 1 << 20;

/// A heap for one block at a time, whose new bytes are zero. Counts the written pages of a block
/// when it is freed.
#[derive(Default)]
struct Counted {
    size: Mutex<usize>,
    pages: Mutex<Vec<usize>>,
}

// SAFETY: `Libc` makes and frees all blocks, and `realloc` copies the contents of its only block.
unsafe impl Heap for Counted {
    fn malloc(&self, size: usize) -> *mut u8 {
        *self.size.lock().expect("no thread panicked") = size;
        Libc.calloc(size)
    }

    fn calloc(&self, size: usize) -> *mut u8 {
        Libc.calloc(size)
    }

    fn aligned(&self, alignment: usize, size: usize) -> *mut u8 {
        Libc.aligned(alignment, size)
    }

    fn aligned_alloc(&self, alignment: usize, size: usize) -> *mut u8 {
        Libc.aligned_alloc(alignment, size)
    }

    unsafe fn realloc(&self, block: *mut u8, size: usize) -> *mut u8 {
        let before = *self.size.lock().expect("no thread panicked");
        let new = self.malloc(size);
        // SAFETY: the program resizes its only block, which has `before` bytes, came from `Libc`,
        // and is not used again. The new block has `size` bytes, because no request of this test
        // fails. Both blocks are live, so they do not overlap.
        unsafe {
            new.copy_from_nonoverlapping(block, before.min(size));
            Libc.free(block);
        }
        new
    }

    unsafe fn free(&self, block: *mut u8) {
        let size = *self.size.lock().expect("no thread panicked");
        // SAFETY: the program's only block has this size. All its bytes are initialised, because
        // new blocks come from `calloc`.
        let bytes = unsafe { std::slice::from_raw_parts(block, size) };
        let written = |page: &&[u8]| page.iter().any(|byte| *byte != 0);
        let pages = bytes.chunks(PAGE).filter(written).count();
        self.pages.lock().expect("no thread panicked").push(pages);
        // SAFETY: by the trait's contract, the block is live. It came from `Libc`.
        unsafe { Libc.free(block) };
    }
}

/// Returns the number of written pages of a block that is resized from each of `sizes` to the next.
/// `sizes` are in MiB.
fn written(sizes: &[usize], touch: Touch) -> usize {
    let mut program = Program::new(1);
    for (place, size) in sizes.iter().enumerate() {
        let size = (size * MIB) as u64;
        let operation = match place.checked_sub(1) {
            None => Operation::Make {
                function: 0,
                size,
                alignment: 0,
            },
            Some(before) => Operation::Resize {
                function: 2,
                size,
                block: before as u64,
            },
        };
        program.step(0, operation);
    }
    let block = sizes.len() as u64 - 1;
    program.step(0, Operation::Free { function: 1, block });
    let (_, file) = compiled(&program.finish().0, Speed::Dependencies);
    let heap = Counted::default();
    // SAFETY: `compile` wrote the program just now, and only this test knows the file.
    let outcome = unsafe { replay(&file, touch, &heap) };
    outcome.unwrap_or_else(|error| panic!("{error}"));
    heap.pages.into_inner().expect("no thread panicked")[0]
}

/// Asserts that `pages` amount to about `mib` MiB. The tolerance covers a block that does not begin
/// on a page boundary.
#[track_caller]
fn assert_near(pages: usize, mib: f64) {
    let expected = mib * (MIB / PAGE) as f64;
    assert!(
        (pages as f64 - expected).abs() <= 4.0,
        "{pages}, not {expected}"
    );
}

#[test]
fn the_last_growth_of_an_array_is_written_by_half_and_every_other_one_whole() {
    assert_near(written(&[4], Touch::Pages), 4.0);
    assert_near(written(&[4, 8], Touch::Pages), 6.0);
    assert_near(written(&[4, 8, 16], Touch::Pages), 12.0);
    assert_near(written(&[4, 8, 16], Touch::All), 16.0);
}

#[test]
fn a_block_that_grows_by_a_little_is_written_whole() {
    assert_near(written(&[8, 9], Touch::Pages), 9.0);
    assert_near(written(&[8, 4], Touch::Pages), 4.0);
}
