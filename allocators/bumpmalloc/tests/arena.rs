//! Tests the arena through the trait `MallocAbi`. The process itself uses another allocator.

use std::collections::BTreeSet;
use std::ptr::NonNull;

use heapdrome_bumpmalloc::Bumpmalloc;
use heapdrome_conformance::{Program, Subject, execute};
use heapdrome_malloc_abi::MallocAbi;

const CHUNK: usize = 1 << 20;

fn allocate(size: usize) -> NonNull<u8> {
    Bumpmalloc::allocate_fast(size)
        .or_else(|| Bumpmalloc::allocate(size))
        .expect("there is memory")
}

fn free(block: NonNull<u8>) {
    // SAFETY: tests pass only live blocks, and do not use them afterwards.
    unsafe {
        if !Bumpmalloc::deallocate_fast(block.as_ptr()) {
            Bumpmalloc::deallocate(block);
        }
    }
}

fn chunk(block: NonNull<u8>) -> usize {
    (block.addr().get() - 1) / CHUNK
}

/// Allocates blocks of 1000 bytes until `chunks` chunks are full. Returns the blocks.
fn fill(chunks: usize) -> Vec<NonNull<u8>> {
    let mut blocks = Vec::new();
    let mut seen = BTreeSet::new();
    while seen.len() <= chunks {
        let block = allocate(1000);
        seen.insert(chunk(block));
        blocks.push(block);
    }
    blocks
}

fn chunks_of(blocks: &[NonNull<u8>]) -> BTreeSet<usize> {
    blocks.iter().map(|block| chunk(*block)).collect()
}

/// Runs `body` in a new thread, whose heap starts without a chunk.
fn in_new_thread(body: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        scope.spawn(body);
    });
}

#[test]
fn generated_programs_find_nothing() {
    let subject = Subject::of::<Bumpmalloc>();
    for (seed, threads) in [(11, 1), (12, 4), (13, 8)] {
        let program = Program::generate(seed, threads, 30_000);
        assert_eq!(execute(&subject, &program), Ok(()), "seed {seed}");
    }
}

#[test]
fn a_chunk_begins_again_when_all_its_blocks_are_freed() {
    in_new_thread(|| {
        let first = fill(20);
        let used = chunks_of(&first);
        first.into_iter().for_each(free);
        for _ in 0..10 {
            let again = fill(15);
            assert!(chunks_of(&again).is_subset(&used));
            again.into_iter().for_each(free);
        }
    });
}

#[test]
fn a_chunk_with_one_live_block_does_not_begin_again() {
    in_new_thread(|| {
        let mut blocks = fill(10);
        let pinned = blocks.swap_remove(4000);
        // SAFETY: the block is live and has 1000 bytes.
        unsafe { pinned.write_bytes(0x5a, 1000) };
        blocks.into_iter().for_each(free);
        for _ in 0..10 {
            let again = fill(10);
            assert!(!chunks_of(&again[1000..]).contains(&chunk(pinned)));
            again.into_iter().for_each(free);
        }
        // SAFETY: the block is live, and its 1000 bytes were written above.
        assert!((0..1000).all(|at| unsafe { pinned.add(at).read() } == 0x5a));
        free(pinned);
    });
}

#[test]
fn frees_by_another_thread_count() {
    in_new_thread(|| {
        let mut used = BTreeSet::new();
        for _ in 0..30 {
            let blocks: Vec<usize> = fill(5)
                .into_iter()
                .map(|block| block.expose_provenance().get())
                .collect();
            used.extend(blocks.iter().map(|address| (address - 1) / CHUNK));
            in_new_thread(move || {
                for address in blocks {
                    free(
                        NonNull::new(std::ptr::with_exposed_provenance_mut(address))
                            .expect("a block"),
                    );
                }
            });
        }
        assert!(used.len() < 40, "{} chunks for 30 times 5", used.len());
    });
}

#[test]
fn realloc_grows_the_last_block_in_place_and_no_other() {
    in_new_thread(|| {
        let before = allocate(100);
        let last = allocate(100);
        // SAFETY: both are live blocks, and are not used after they have moved.
        unsafe {
            before.write_bytes(1, 100);
            last.write_bytes(2, 100);
            assert_eq!(Bumpmalloc::reallocate(last, 50_000), Some(last));
            assert_eq!(Bumpmalloc::reallocate(last, 10), Some(last));
            assert_eq!(Bumpmalloc::usable_size(last), 16);
            let moved = Bumpmalloc::reallocate(before, 50_000).expect("there is memory");
            assert_ne!(moved, before);
            assert!((0..100).all(|at| moved.add(at).read() == 1));
            assert!((0..10).all(|at| last.add(at).read() == 2));
            free(moved);
        }
        free(last);
    });
}

#[test]
fn what_realloc_gave_back_is_not_zero_for_calloc_by_mistake() {
    in_new_thread(|| {
        let last = allocate(10_000);
        // SAFETY: both blocks are live, and have the accessed bytes.
        unsafe {
            last.write_bytes(0xff, 10_000);
            assert_eq!(Bumpmalloc::reallocate(last, 16), Some(last));
            let zeroed = Bumpmalloc::allocate_zeroed(9_000).expect("there is memory");
            assert!((0..9_000).all(|at| zeroed.add(at).read() == 0));
            free(zeroed);
        }
        free(last);
    });
}

#[test]
fn trim_gives_memory_back_and_leaves_live_blocks_alone() {
    in_new_thread(|| {
        let mut blocks = fill(10);
        let kept = blocks.swap_remove(2500);
        // SAFETY: these are live blocks of 1000 bytes.
        unsafe {
            blocks.iter().for_each(|block| block.write_bytes(3, 1000));
            kept.write_bytes(4, 1000);
        }
        blocks.into_iter().for_each(free);
        assert!(Bumpmalloc::trim(0));
        // SAFETY: the block is live, and its 1000 bytes were written above.
        assert!((0..1000).all(|at| unsafe { kept.add(at).read() } == 4));
        let again = fill(10);
        again.into_iter().for_each(free);
        free(kept);
    });
}

#[test]
fn large_blocks_move_with_their_contents() {
    let block = allocate(3 << 20);
    // SAFETY: the blocks are live, and are not used after they have moved.
    unsafe {
        block.write_bytes(9, 3 << 20);
        let larger = Bumpmalloc::reallocate(block, 64 << 20).expect("there is memory");
        assert!(
            (0..3 << 20)
                .step_by(997)
                .all(|at| larger.add(at).read() == 9)
        );
        assert_eq!(larger.add((64 << 20) - 1).read(), 0);
        let smaller = Bumpmalloc::reallocate(larger, 1000).expect("there is memory");
        assert!((0..1000).all(|at| smaller.add(at).read() == 9));
        free(smaller);
    }
}

#[test]
fn statistics_count_mappings_and_remember_the_peak() {
    let block = allocate(500 << 20);
    let with = Bumpmalloc::statistics();
    assert!(with.live_mapped >= 500 << 20 && with.mapped_blocks >= 1);
    free(block);
    let without = Bumpmalloc::statistics();
    assert!(without.peak_reserved >= with.live_mapped);
    assert!(without.reserved < with.reserved);
    assert!(without.live + without.free <= without.reserved);
}
