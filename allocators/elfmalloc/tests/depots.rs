//! Depots that are emptied in an epoch, over simulated pages.

use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;

use heapdrome_elfmalloc::SizeClass;
use heapdrome_elfmalloc::heap::backend::Backend;
use heapdrome_elfmalloc::heap::front::ThreadHeap;
use heapdrome_elfmalloc::heap::front_end::{FrontEnd, Magazines};
use heapdrome_elfmalloc::settings::Settings;
use heapdrome_pages::Simulated;

const HEAPS: usize = if cfg!(miri) { 4 } else { 500 };
/// Blocks of each heap: two slabs.
const BLOCKS: usize = 128;
/// Far more than one pass needs, and far less than one within another for every heap.
const STACK: usize = 128 << 10;

fn class() -> SizeClass {
    SizeClass::of(1024)
}

fn allocate(backend: &Backend<Simulated>, heap: NonNull<ThreadHeap>) -> Vec<*mut u8> {
    let mut blocks = Vec::new();
    while blocks.len() < BLOCKS {
        // SAFETY: the heap is this thread's, and its magazine is empty; before a top lies a slot or null.
        unsafe {
            blocks.push(Magazines::refill(backend, heap, class()));
            let front = &(*heap.as_ptr()).front;
            while !(*front.top(class()).sub(1)).is_null() {
                let top = front.top(class()).sub(1);
                blocks.push(*top);
                front.set_top(class(), top);
            }
        }
    }
    blocks
}

/// Frees blocks; some stay in the heap's depot, and none in its magazine.
fn free(backend: &Backend<Simulated>, heap: NonNull<ThreadHeap>, blocks: Vec<*mut u8>) {
    // SAFETY: the heap is this thread's, and the blocks are the test's own.
    unsafe {
        for block in blocks {
            Magazines::put(backend, heap, class(), block);
        }
        backend.empty_magazines(heap, false);
    }
}

#[test]
fn without_decay_one_pass_empties_them_and_none_begins_within_it() {
    let backend = Backend::new(Simulated::new(1 << 30));
    backend.start(|| Settings {
        arena: 0,
        decay: u64::MAX,
        ..Settings::DEFAULT
    });
    let heaps: Vec<_> = (0..HEAPS)
        .map(|_| backend.attach().expect("there is memory"))
        .collect();
    // Depots are emptied before memory grows: so all of it is there before the first block is freed.
    let blocks: Vec<_> = heaps.iter().map(|&heap| allocate(&backend, heap)).collect();
    for (&heap, blocks) in heaps.iter().zip(blocks) {
        free(&backend, heap, blocks);
    }
    assert!(
        backend.slabs() >= HEAPS,
        "the depots keep slabs: {}",
        backend.slabs()
    );
    backend.decay.store(0, Relaxed);
    std::thread::scope(|scope| {
        let passes = || (0..2).for_each(|_| backend.tick());
        let thread = std::thread::Builder::new().stack_size(STACK);
        thread
            .spawn_scoped(scope, passes)
            .expect("there are threads");
    });
    backend.check();
    assert_eq!(backend.slabs(), 0, "what was idle went back");
}
