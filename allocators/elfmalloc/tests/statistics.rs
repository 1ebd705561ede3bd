//! Statistics over simulated pages.

mod paths;
mod small_arenas;

use heapdrome_elfmalloc::SizeClass;
use heapdrome_elfmalloc::heap::front_end::Magazines;
use heapdrome_elfmalloc::heap::heaps::Heaps;
use heapdrome_elfmalloc::heap::large::{allocate_large, free_large};
use heapdrome_elfmalloc::heap::threads::{detach, note_cached};
use heapdrome_elfmalloc::process::statistics::Snapshot;
use heapdrome_elfmalloc::settings::Settings;
use heapdrome_elfmalloc::size_class::UNIT;
use heapdrome_elfmalloc::units::amount::Units;
use heapdrome_pages::Simulated;
use paths::{allocate, put};
use small_arenas::backend;

#[test]
fn statistics_say_what_is_live_kept_and_counted() {
    let backend = backend(1 << 30);
    let heap = backend.attach().expect("there is memory");
    // The blocks occupy two slabs.
    let (size, many) = if cfg!(miri) { (1024, 96) } else { (64, 1500) };
    let class = SizeClass::of(size);
    let blocks: Vec<_> = (0..many)
        .map(|_| allocate::<Magazines>(&backend, heap, class))
        .collect();
    let large = allocate_large(&backend, 300_000, UNIT).expect("there is memory");
    note_cached(&backend, heap);
    let before = Snapshot::of(&backend);
    let of = before.classes[class.number()];
    assert_eq!(of.live, many * size);
    assert_eq!((of.mapped, before.large), (2 * UNIT, 5 * UNIT));
    assert_eq!(of.live + of.cached + of.dirty, of.mapped);
    assert!(of.refills > 0 && of.remote_frees == 0);
    assert_eq!(before.statistics().live, of.live + 5 * UNIT);
    let other = backend.attach().expect("there is memory");
    for block in blocks {
        put::<Magazines>(&backend, other, class, block);
    }
    // SAFETY: the heaps and the block belong to this thread, which no longer uses them.
    unsafe {
        detach(&backend, other);
        detach(&backend, heap);
        assert_eq!(free_large(&backend, large.block.addr().get()), Ok(()));
    }
    backend.release_kept();
    let after = Snapshot::of(&backend);
    assert_eq!(after.classes[class.number()].remote_frees, many as u64);
    assert_eq!(
        (after.all.live, after.all.cached, after.all.dirty),
        (0, 0, 0)
    );
    assert_eq!((after.purges, after.idle), (0, 7 * UNIT));
    backend.memory().purge_units(Units::MAX);
    let purged = Snapshot::of(&backend);
    assert_eq!((purged.purged, purged.idle), (7 * UNIT as u64, 0));
    assert!(purged.purges > 0);
}

#[test]
fn the_peak_does_not_shrink_with_the_arena() {
    let backend = Heaps::new(Simulated::new(1 << 30));
    backend.start(|| Settings {
        arena: 64 << 20,
        ..Settings::DEFAULT
    });
    let large = allocate_large(&backend, 64 * UNIT, UNIT).expect("there is memory");
    let before = Snapshot::of(&backend);
    assert!(before.peak_mapped >= before.mapped);
    // SAFETY: the block belongs to the test, which no longer uses it.
    unsafe { assert_eq!(free_large(&backend, large.block.addr().get()), Ok(())) };
    backend.memory().purge_units(Units::MAX);
    assert!(backend.memory().release_addresses(Units::NONE));
    let after = Snapshot::of(&backend);
    assert!(after.mapped < before.mapped);
    assert_eq!(after.peak_mapped, before.peak_mapped);
}

#[test]
fn an_allocation_that_fails_is_no_refill() {
    let backend = backend(1 << 30);
    let class = SizeClass::of(64);
    let refills = || Snapshot::of(&backend).classes[class.number()].refills;
    backend.memory().pages.set_limit(0);
    assert!(backend.take_without_heap(class).is_null());
    assert_eq!(refills(), 0);
    backend.memory().pages.set_limit(1 << 30);
    assert!(!backend.take_without_heap(class).is_null());
    assert_eq!(refills(), 1);
}
