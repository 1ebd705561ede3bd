//! Arenas over simulated pages: small arenas, and an arena that grows until it meets a mapping or a
//! limit and shrinks when it is trimmed.

mod giving;
mod small_arenas;

use std::ptr::{NonNull, null_mut};

use giving::give;
use heapdrome_elfmalloc::SizeClass;
use heapdrome_elfmalloc::heap::heaps::Heaps;
use heapdrome_elfmalloc::heap::large::allocate_large;
use heapdrome_elfmalloc::heap::large::free_large;
use heapdrome_elfmalloc::heap::refill::refill;
use heapdrome_elfmalloc::heap::threads::trim;
use heapdrome_elfmalloc::settings::Settings;
use heapdrome_elfmalloc::size_class::UNIT;
use heapdrome_elfmalloc::units::amount::Units;
use heapdrome_elfmalloc::units::arena::LARGEST_RUN;
use heapdrome_elfmalloc::units::large::usable;
use heapdrome_elfmalloc::units::pool::Run;
use heapdrome_pages::{Access, Pages, Placed, Simulated};
use small_arenas::backend;

/// Returns a back-end of small arenas in `limit` bytes of address space.
/// Takes single units until none is left. Returns the number of units among them that lie in the
/// `bytes` bytes from `start` on.
fn take_all_units(backend: &Heaps<Simulated>, start: NonNull<u8>, bytes: usize) -> usize {
    let addresses = start.addr().get()..start.addr().get() + bytes;
    std::iter::from_fn(|| backend.memory().allocate_run(Units::new(1), UNIT))
        .filter(|run| addresses.contains(&run.base.addr().get()))
        .count()
}

#[test]
fn an_older_arena_grows_on_where_the_last_one_was_made_for_a_long_run() {
    let backend = backend(60 << 20);
    let first = backend
        .memory()
        .allocate_run(Units::new(1), UNIT)
        .expect("there is memory");
    assert!(
        backend
            .memory()
            .allocate_run(Units::new(LARGEST_RUN), UNIT)
            .is_some()
    );
    let arena = 8 << 20;
    let others = take_all_units(&backend, first.base, arena);
    assert_eq!(others, arena / UNIT - 1, "all of the first arena is used");
    backend.check();
}

#[test]
#[cfg_attr(miri, ignore = "it takes much memory")]
fn a_block_that_the_system_has_no_mapping_for_comes_from_an_arena_with_room() {
    const LONGEST: usize = LARGEST_RUN * UNIT;
    let backend = backend(1 << 30);
    // The size of a new arena grows with the committed memory, so the last arena has room for two
    // blocks.
    let blocks = [(); 4].map(|()| allocate_large(&backend, LONGEST, UNIT));
    backend
        .memory()
        .pages
        .set_limit(backend.memory().pages.reserved());
    assert!(allocate_large(&backend, 2 * LONGEST, UNIT).is_none());
    let last = blocks[3].expect("there is memory").block;
    // SAFETY: the blocks belong to the test, which does not use them after they are freed.
    unsafe {
        assert_eq!(free_large(&backend, last.addr().get()), Ok(()));
        let long = allocate_large(&backend, 2 * LONGEST, UNIT);
        let block = long.expect("the arena has room").block;
        assert_eq!(block, last);
        assert_eq!(
            usable(backend.memory(), block.addr().get()),
            Some(2 * LONGEST)
        );
        assert_eq!(free_large(&backend, block.addr().get()), Ok(()));
    }
    backend.check();
}

#[test]
fn a_size_that_cannot_be_costs_nothing_that_is_kept() {
    let backend = backend(1 << 30);
    let heap = backend.attach().expect("there is memory");
    let class = SizeClass::of(1024);
    let idle = allocate_large(&backend, 8 << 20, UNIT).expect("there is memory");
    // SAFETY: the large block belongs to the test, which no longer uses it.
    unsafe {
        let mut blocks = [null_mut(); 64];
        let bin = backend.bin(heap, class);
        assert_eq!(backend.take(bin, &mut blocks[..]), 64);
        assert_eq!(give(&backend, Some(bin), class, &mut blocks), Ok(()));
        assert_eq!(free_large(&backend, idle.block.addr().get()), Ok(()));
    }
    let kept = (backend.shards.slabs(), backend.memory().pool.lock().dirty);
    assert_eq!(kept, (1, Units::filled_by(8 << 20)));
    for size in [2 << 30, isize::MAX as usize] {
        assert!(allocate_large(&backend, size, UNIT).is_none());
    }
    assert_eq!(
        (backend.shards.slabs(), backend.memory().pool.lock().dirty),
        kept
    );
    assert_eq!(backend.memory().pages.calls().purge, 0);
    backend.check();
}

#[test]
fn memory_that_blocks_of_one_size_had_serves_any_other_size() {
    let backend = backend(60 << 20);
    let heap = backend.attach().expect("there is memory");
    // The slabs of the first class need no external bitmap; the slabs of the other two do.
    for class in [1024, 64, 16].map(SizeClass::of) {
        let bin = backend.bin(heap, class);
        let mut blocks = Vec::new();
        loop {
            let mut more = [null_mut(); 64];
            let taken = backend.take(bin, &mut more[..]);
            if taken == 0 {
                break;
            }
            blocks.extend_from_slice(&more[..taken]);
        }
        assert!(blocks.len() * class.size() > 40 << 20, "{class:?}");
        assert_eq!(give(&backend, None, class, &mut blocks), Ok(()));
    }
    backend.check();
}

/// Maximum number of bytes of the growing arena.
const GROWN: usize = 512 << 20;

/// Returns a back-end with one growing arena.
fn growing(limit: usize) -> Heaps<Simulated> {
    let backend = Heaps::new(Simulated::new(limit));
    backend.start(|| Settings {
        arena: GROWN,
        ..Settings::DEFAULT
    });
    backend
}

#[test]
#[cfg_attr(miri, ignore = "it takes much memory")]
fn an_arena_that_grows_takes_few_addresses_while_little_is_used() {
    let backend = growing(1 << 30);
    assert!(
        backend.memory().pages.reserved() < 1 << 20,
        "nothing is used"
    );
    let heap = backend.attach().expect("there is memory");
    let block = refill(&backend, heap, SizeClass::of(64));
    assert!(!block.is_null());
    assert!(
        backend.memory().pages.reserved() < 4 << 20,
        "a slab is used"
    );
    assert_eq!(backend.memory().map.get(block.addr()), SizeClass::of(64));
    backend.check();
}

#[test]
#[cfg_attr(miri, ignore = "it takes much memory")]
fn addresses_outside_of_the_arena_have_no_class() {
    let backend = growing(1 << 30);
    let run = backend
        .memory()
        .allocate_run(Units::new(1), UNIT)
        .expect("there is memory");
    let base = run.base.addr().get();
    for address in [0, 64, base - 1, base + GROWN, 1 << 40, usize::MAX] {
        assert_eq!(
            backend.memory().map.get(address),
            SizeClass::NONE,
            "{address:#x}"
        );
    }
}

#[test]
#[cfg_attr(miri, ignore = "it takes much memory")]
fn an_arena_grows_around_a_mapping_of_another() {
    let backend = growing(1 << 30);
    let first = backend
        .memory()
        .allocate_run(Units::new(1), UNIT)
        .expect("there is memory");
    let taken = first.base.addr().get() + (40 << 20);
    let place = first.base.with_addr(taken.try_into().expect("an address"));
    let placed = backend
        .memory()
        .pages
        .reserve_at(place, 1 << 20, Access::ReadWrite);
    assert_eq!(placed, Placed::Done);
    let arena = first.base.addr().get()..first.base.addr().get() + GROWN;
    let runs: Vec<_> = std::iter::from_fn(|| backend.memory().allocate_run(Units::new(16), UNIT))
        .map(|run| run.base.addr().get())
        .take_while(|run| arena.contains(run))
        .collect();
    // The skipped gap has 64 MiB, and at most 40 MiB lie before it.
    assert!(runs.len() * 16 * UNIT > GROWN - (110 << 20));
    assert!(runs.iter().any(|&run| run > taken), "it grew on");
    assert!(
        runs.iter()
            .all(|&run| run + 16 * UNIT <= taken || run >= taken + (1 << 20))
    );
    let run = backend.memory().run_of(taken);
    // An address in the gap has the descriptor of an unused unit.
    assert!(run.is_none_or(|run| run.class() == SizeClass::NONE));
    backend.check();
}

#[test]
#[cfg_attr(miri, ignore = "it takes much memory")]
fn an_arena_that_met_a_limit_grows_on_when_that_is_raised() {
    let backend = growing(1 << 30);
    assert!(
        backend
            .memory()
            .allocate_run(Units::new(16), UNIT)
            .is_some()
    );
    backend
        .memory()
        .pages
        .set_limit(backend.memory().pages.reserved());
    while backend
        .memory()
        .allocate_run(Units::new(16), UNIT)
        .is_some()
    {}
    backend.check();
    backend.memory().pages.set_limit(1 << 30);
    assert!(
        backend
            .memory()
            .allocate_run(Units::new(64), UNIT)
            .is_some()
    );
    backend.check();
}

#[test]
fn without_room_for_an_arena_that_grows_small_ones_serve() {
    // The limit has no room even for the first step of descriptors.
    let backend = growing(32 << 10);
    assert!(backend.memory().allocate_run(Units::new(1), UNIT).is_none());
    backend.memory().pages.set_limit(64 << 20);
    assert!(backend.memory().allocate_run(Units::new(1), UNIT).is_some());
    backend.check();
}

#[test]
#[cfg_attr(miri, ignore = "it takes much memory")]
fn trimming_gives_addresses_back_behind_the_last_unit_in_use() {
    let backend = growing(1 << 30);
    let runs = [(); 8].map(|()| {
        backend
            .memory()
            .allocate_run(Units::new(64), UNIT)
            .expect("there is memory")
    });
    let before = backend.memory().pages.reserved();
    let give = |run: &Run| {
        // SAFETY: the run belongs to this test, which no longer uses it.
        backend
            .memory()
            .with_pool(|pool| unsafe { pool.free(run.base.as_ptr(), Units::new(64), true) });
    };
    runs[..2].iter().chain(&runs[3..]).for_each(give);
    assert!(trim(&backend, None, 0));
    assert!(backend.memory().pages.reserved() <= before - 5 * 64 * UNIT);
    backend.check();
    give(&runs[2]);
    let trim = |keep| trim(&backend, None, keep);
    assert!(trim(32 * UNIT));
    assert!(backend.memory().pages.reserved() > before - 8 * 64 * UNIT);
    assert!(trim(0));
    assert!(backend.memory().pages.reserved() <= before - 8 * 64 * UNIT);
    assert!(
        backend
            .memory()
            .allocate_run(Units::new(512), UNIT)
            .is_some(),
        "it grows again"
    );
    backend.check();
}

#[test]
#[cfg_attr(miri, ignore = "it takes much memory")]
fn a_structure_made_at_the_limit_does_not_keep_the_arena_from_shrinking() {
    let backend = growing(1 << 30);
    let memory = backend.memory();
    let first = memory.allocate_run(Units::new(1), UNIT);
    let mut runs = vec![first.expect("there is memory")];
    memory.pages.set_limit(32 << 20);
    // Structures use up the rest, so that no memory is left for another chunk.
    while memory.structure(UNIT).is_some() {}
    memory.pages.set_limit(64 << 20);
    runs.extend(std::iter::from_fn(|| {
        memory.allocate_run(Units::new(1), UNIT)
    }));
    let full = memory.pages.reserved();
    let give = |run: &Run| {
        // SAFETY: the run belongs to this test, which no longer uses it.
        memory.with_pool(|pool| unsafe { pool.free(run.base.as_ptr(), run.units, true) });
    };
    // Free the arena's last units first, as a program does when it frees a list from its head.
    let last = runs.split_off(runs.len() - 4);
    last.iter().for_each(give);
    assert!(memory.structure(4096).is_some(), "there are free units");
    runs.iter().for_each(give);
    assert!(trim(&backend, None, 0));
    let returned = (runs.len() - 1) * UNIT;
    assert!(memory.pages.reserved() <= full - returned);
    backend.check();
}

#[test]
#[cfg_attr(miri, ignore = "it takes much memory")]
fn small_arenas_serve_where_the_one_that_grows_has_no_room() {
    let backend = growing(1 << 30);
    let first = backend
        .memory()
        .allocate_run(Units::new(1), UNIT)
        .expect("there is memory");
    let taken = first.base.addr().get() + (4 << 20);
    let place = first.base.with_addr(taken.try_into().expect("an address"));
    // Another mapping occupies the rest of the arena's room.
    let placed = backend
        .memory()
        .pages
        .reserve_at(place, GROWN - (4 << 20), Access::ReadWrite);
    assert_eq!(placed, Placed::Done);
    let heap = backend.attach().expect("there is memory");
    let class = SizeClass::of(4096);
    let bin = backend.bin(heap, class);
    let mut blocks = vec![null_mut(); 2048];
    for slots in blocks.chunks_mut(8) {
        let taken = backend.take(bin, &mut slots[..]);
        assert_eq!(taken, slots.len());
    }
    let outside = |block: &&*mut u8| backend.memory().map.get(block.addr()) == SizeClass::NONE;
    assert!(blocks.iter().any(|block| outside(&block)));
    assert!(blocks.iter().all(|block| {
        backend
            .memory()
            .run_of(block.addr())
            .is_some_and(|run| run.class() == class)
    }));
    assert_eq!(give(&backend, None, class, &mut blocks), Ok(()));
    backend.check();
}
