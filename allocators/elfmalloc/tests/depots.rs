//! Emptying of depots at the end of an epoch, over simulated pages.

mod paths;

use heapdrome_elfmalloc::SizeClass;
use heapdrome_elfmalloc::heap::front_end::Magazines;
use heapdrome_elfmalloc::heap::heaps::Heaps;
use heapdrome_elfmalloc::heap::thread_heap::HeapRef;
use heapdrome_elfmalloc::settings::Settings;
use heapdrome_pages::Simulated;
use paths::{allocate as allocate_one, put};

const HEAPS: usize = if cfg!(miri) { 4 } else { 500 };
/// Number of blocks of each heap: two slabs.
const BLOCKS: usize = 128;
/// Stack size: far more than one pass needs, and far less than nested passes for every heap.
const STACK: usize = 128 << 10;

fn class() -> SizeClass {
    SizeClass::of(1024)
}

fn allocate(backend: &Heaps<Simulated>, heap: HeapRef) -> Vec<*mut u8> {
    let mut blocks = Vec::new();
    while blocks.len() < BLOCKS {
        blocks.push(allocate_one::<Magazines>(backend, heap, class()));
    }
    blocks
}

/// Frees blocks so that some stay in the heap's depot, and none in its magazine.
fn free(backend: &Heaps<Simulated>, heap: HeapRef, blocks: Vec<*mut u8>) {
    for block in blocks {
        put::<Magazines>(backend, heap, class(), block);
    }
    backend.empty_magazines(heap);
}

#[test]
fn without_decay_one_pass_empties_them_and_none_begins_within_it() {
    let backend = Heaps::new(Simulated::new(1 << 30));
    backend.start(|| Settings {
        arena: 0,
        decay: u64::MAX,
        ..Settings::DEFAULT
    });
    let heaps: Vec<_> = (0..HEAPS)
        .map(|_| backend.attach().expect("there is memory"))
        .collect();
    // Depots are emptied before memory grows, so all memory must be in use before the first block
    // is freed.
    let blocks: Vec<_> = heaps.iter().map(|&heap| allocate(&backend, heap)).collect();
    for (&heap, blocks) in heaps.iter().zip(blocks) {
        free(&backend, heap, blocks);
    }
    assert!(
        backend.shards.slabs() >= HEAPS,
        "the depots keep slabs: {}",
        backend.shards.slabs()
    );
    backend.set_decay(0);
    std::thread::scope(|scope| {
        // The first call begins the first epoch.
        let passes = || (0..3).for_each(|_| backend.tick());
        let thread = std::thread::Builder::new().stack_size(STACK);
        thread
            .spawn_scoped(scope, passes)
            .expect("there are threads");
    });
    backend.check();
    assert_eq!(backend.shards.slabs(), 0, "what was idle went back");
}
