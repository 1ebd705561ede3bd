//! Magazines of a thread that frees all or a part of its blocks, and the budget from which they
//! grow, over simulated pages.

mod paths;

use heapdrome_elfmalloc::SizeClass;
use heapdrome_elfmalloc::heap::front_end::Magazines;
use heapdrome_elfmalloc::heap::heaps::Heaps;
use heapdrome_elfmalloc::heap::maintenance::look_around;
use heapdrome_elfmalloc::heap::thread_heap::HeapRef;
use heapdrome_elfmalloc::heap::threads::detach;
use heapdrome_elfmalloc::heap::threads::note_cached;
use heapdrome_elfmalloc::process::statistics::Snapshot;
use heapdrome_elfmalloc::settings::Settings;
use heapdrome_elfmalloc::size_class::FIRST_SHARED;
use heapdrome_pages::Simulated;
use paths::{allocate, put};

/// Number of classes up to 32 KiB.
const CLASSES: usize = 72;
/// Step between the numbers of the classes in use. Larger under Miri, so that each class still has
/// some hundred blocks.
const STEP: usize = if cfg!(miri) { 12 } else { 1 };
/// Number of blocks of the program, spread evenly over the classes.
const BLOCKS: usize = if cfg!(miri) { 1_500 } else { 30_000 };
/// Number of times that a part of the blocks is freed and allocated again.
const ROUNDS: usize = if cfg!(miri) { 2 } else { 20 };
/// Number of times that all blocks are freed and allocated again.
const WHOLE_ROUNDS: usize = if cfg!(miri) { 2 } else { 3 };
/// Maximum number of bytes in the magazines of a thread, except in tests with a small budget.
const BUDGET: usize = if cfg!(miri) {
    256 << 10
} else {
    Settings::DEFAULT.budget
};
/// Capacity in bytes up to which a thread does not drain its magazines: an eighth of the budget.
const LEAST: usize = BUDGET / 8;

/// Returns a back-end without decay, in which memory goes back only because of the threads'
/// actions.
fn backend() -> Heaps<Simulated> {
    backend_with(u64::MAX, BUDGET)
}

fn backend_with(decay: u64, budget: usize) -> Heaps<Simulated> {
    let backend = Heaps::new(Simulated::new(1 << 30));
    backend.start(|| Settings {
        arena: 0,
        decay,
        budget,
        ..Settings::DEFAULT
    });
    backend
}

fn attach(backend: &Heaps<Simulated>) -> HeapRef {
    backend.attach().expect("there is memory")
}

/// Returns the class of the block with number `block`. Consecutive numbers step through all classes
/// in use.
fn class_of(block: usize) -> SizeClass {
    SizeClass::from_number((1 + block * 29 * STEP % CLASSES) as u8)
}

fn free(backend: &Heaps<Simulated>, heap: HeapRef, class: SizeClass, block: *mut u8) {
    heap.front.count(1);
    if heap.front.is_due() {
        look_around(backend, heap);
    }
    put::<Magazines>(backend, heap, class, block);
}

fn allocate_all(backend: &Heaps<Simulated>, heap: HeapRef, count: usize) -> Vec<*mut u8> {
    (0..count)
        .map(|block| allocate::<Magazines>(backend, heap, class_of(block)))
        .collect()
}

/// Returns the bytes of blocks above 4 KiB in magazines, exact for the calling thread.
fn large_cached(backend: &Heaps<Simulated>, heap: HeapRef) -> usize {
    note_cached(backend, heap);
    let classes = Snapshot::of(backend).classes;
    classes[FIRST_SHARED..]
        .iter()
        .map(|class| class.cached)
        .sum()
}

/// Returns the capacity of a heap's magazines, in bytes.
fn capacity(heap: HeapRef) -> usize {
    heap.magazines()
        .map(|(class, magazine)| magazine.capacity() * class.size())
        .sum()
}

#[test]
fn a_thread_that_freed_all_it_had_keeps_no_large_blocks_and_knows_its_magazines_again() {
    let backend = backend();
    let heap = attach(&backend);
    let mut before = LEAST;
    for _ in 0..WHOLE_ROUNDS {
        let blocks = allocate_all(&backend, heap, BLOCKS);
        let now = capacity(heap);
        assert!(now >= before, "none has become smaller: {now}, {before}");
        before = now;
        for (index, block) in blocks.into_iter().enumerate() {
            free(&backend, heap, class_of(index), block);
        }
        assert_eq!(large_cached(&backend, heap), 0);
    }
    backend.check();
}

#[test]
fn a_thread_that_frees_a_part_and_allocates_again_keeps_its_magazines() {
    let backend = backend();
    let heap = attach(&backend);
    let mut blocks = allocate_all(&backend, heap, BLOCKS);
    let before = capacity(heap);
    for round in 0..ROUNDS {
        let part = || (round % 3..BLOCKS).step_by(3);
        for index in part() {
            free(&backend, heap, class_of(index), blocks[index]);
        }
        for index in part() {
            blocks[index] = allocate::<Magazines>(&backend, heap, class_of(index));
        }
        assert!(capacity(heap) >= before, "none has become smaller");
    }
    backend.check();
}

#[test]
fn magazines_that_rest_are_paid_for_once() {
    // Without decay time, each clock check shrinks unused magazines. This budget is small, so a
    // thread soon spends it.
    const LITTLE: usize = 64 << 10;
    let backend = backend_with(0, LITTLE);
    // With a small budget, fewer blocks suffice under Miri.
    let count = BLOCKS / if cfg!(miri) { 5 } else { 1 };
    for _ in 0..2 {
        let heap = attach(&backend);
        for _ in 0..if cfg!(miri) { 2 } else { 4 } {
            let blocks = allocate_all(&backend, heap, count);
            for (index, block) in blocks.into_iter().enumerate() {
                free(&backend, heap, class_of(index), block);
            }
            (0..3).for_each(|_| look_around(&backend, heap));
            let budget = heap.budget.get();
            assert!(budget <= LITTLE, "{budget}");
        }
        // SAFETY: the heap belongs to this thread, which no longer uses it.
        unsafe { detach(&backend, heap) };
    }
    backend.check();
}
