//! Classes without cached blocks, over simulated pages.

mod paths;

use heapdrome_elfmalloc::SizeClass;
use heapdrome_elfmalloc::heap::front::FEWEST_TICKS;
use heapdrome_elfmalloc::heap::front_end::{FrontEnd, Magazines};
use heapdrome_elfmalloc::heap::heaps::Heaps;
use heapdrome_elfmalloc::heap::local_cache::LocalCache;
use heapdrome_elfmalloc::settings::Settings;
use heapdrome_elfmalloc::size_class::{UNIT, UNIT_SHIFT};
use heapdrome_elfmalloc::units::amount::Units;
use heapdrome_pages::Simulated;
use paths::{allocate, put};

/// Returns a back-end without budget, so that only magazines of small blocks get slots.
fn backend(limit: usize) -> Heaps<Simulated> {
    let backend = Heaps::new(Simulated::new(limit));
    backend.start(|| Settings {
        arena: 0,
        budget: 0,
        ..Settings::DEFAULT
    });
    backend
}

fn small() -> SizeClass {
    SizeClass::of(896)
}

fn large() -> SizeClass {
    SizeClass::of(96 << 10)
}

/// Uses up all memory, then frees all blocks of some adjacent slabs; the thread still caches some
/// of them. Asserts that this memory suffices for another class.
fn what_the_thread_keeps_serves<F: FrontEnd>() {
    let backend = backend(3 << 20);
    let heap = backend.attach().expect("there is memory");
    let next = || allocate::<F>(&backend, heap, small());
    let blocks: Vec<_> = std::iter::repeat_with(next)
        .take_while(|block| !block.is_null())
        .collect();
    let units = Units::of_slab(large());
    let first = blocks[0].addr() >> UNIT_SHIFT;
    for &block in &blocks {
        if (first..first + units.count()).contains(&(block.addr() >> UNIT_SHIFT)) {
            put::<F>(&backend, heap, small(), block);
        }
    }
    assert!(
        backend.memory().allocate_run(units, UNIT).is_none(),
        "the thread keeps nothing of these slabs"
    );
    assert!(!allocate::<F>(&backend, heap, large()).is_null());
    backend.check();
}

#[test]
fn they_are_served_from_what_the_thread_keeps_of_others_before_malloc_fails() {
    what_the_thread_keeps_serves::<Magazines>();
}

#[test]
fn so_they_are_with_the_thread_local_cache() {
    what_the_thread_keeps_serves::<LocalCache>();
}

#[test]
fn their_blocks_count_towards_the_next_look_at_the_clock() {
    let backend = backend(16 << 20);
    let heap = backend.attach().expect("there is memory");
    let front = &heap.front;
    let blocks: Vec<_> = (0..=FEWEST_TICKS)
        .map(|_| allocate::<Magazines>(&backend, heap, large()))
        .collect();
    assert!(front.is_due(), "after mallocs");
    front.set_ticks(FEWEST_TICKS);
    for block in blocks {
        put::<Magazines>(&backend, heap, large(), block);
    }
    assert!(front.is_due(), "after frees");
    backend.check();
}
