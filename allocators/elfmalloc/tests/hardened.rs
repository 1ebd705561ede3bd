//! Runs the conformance programs on the hardened variant, through its trait. The process itself
//! uses another allocator.

use heapdrome_conformance::{Program, Subject, execute};
use heapdrome_elfmalloc::Hardened;
use heapdrome_malloc_abi::MallocAbi;

#[test]
fn generated_programs_find_nothing() {
    let subject = Subject::of::<Hardened>();
    for (seed, threads) in [(1, 1), (2, 2), (3, 4), (4, 8)] {
        let program = Program::generate(seed, threads, 30_000);
        assert_eq!(execute(&subject, &program), Ok(()), "seed {seed}");
    }
}

/// A large block must not be mapped and copied anew at every step.
#[test]
fn a_large_block_that_grows_in_small_steps_moves_seldom() {
    const STEP: usize = 640;
    let mut size = 200_000;
    let mut block = Hardened::allocate(size).expect("memory");
    let mut moves = 0;
    // SAFETY: the block is live, belongs to this test, and has `size` bytes, which are written as
    // soon as it has them. After each resizing only the returned block is used.
    unsafe {
        block.write_bytes(7, size);
        while size < 1 << 20 {
            let to = Hardened::reallocate(block, size + STEP).expect("memory");
            moves += u32::from(to != block);
            block = to;
            block.add(size).write_bytes(7, STEP);
            size += STEP;
        }
        assert!((0..size).all(|place| block.add(place).read() == 7));
        assert_eq!(moves, 3, "at 200,000, 400,000 and 800,000 bytes");
        assert_eq!(Hardened::reallocate(block, 300_000), Some(block));
        assert!((0..300_000).all(|place| block.add(place).read() == 7));
        Hardened::deallocate(block);
    }
}
