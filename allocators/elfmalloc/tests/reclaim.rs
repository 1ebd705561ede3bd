//! Purges of slabs and units over simulated pages: idle memory, memory that other threads use
//! meanwhile, and memory that makes way for growth. Also an arena that the system refuses to open.

mod giving;

use std::ops::Range;
use std::ptr::{NonNull, null_mut, without_provenance_mut};
use std::sync::{Mutex, PoisonError};

use heapdrome_elfmalloc::SizeClass;
use heapdrome_elfmalloc::heap::heaps::Heaps;
use heapdrome_elfmalloc::heap::large::allocate_large;
use heapdrome_elfmalloc::heap::threads::trim;
use heapdrome_elfmalloc::process::statistics::Snapshot;
use heapdrome_elfmalloc::settings::Settings;
use heapdrome_elfmalloc::size_class::UNIT;
use heapdrome_elfmalloc::units::amount::Units;
use heapdrome_elfmalloc::units::arena::{HUGE, LARGEST_RUN};
use heapdrome_pages::{Access, Advice, Pages, Remap, Simulated};

type Hook = Box<dyn FnOnce() + Send>;

/// System that calls a hook before its next purge, and records the purged ranges.
struct Hooked {
    system: Simulated,
    hook: Mutex<Option<Hook>>,
    purged: Mutex<Vec<Range<usize>>>,
}

impl Hooked {
    fn before_purge(&self, hook: impl FnOnce() + Send + 'static) {
        *self.hook.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(hook));
    }
}

// SAFETY: all calls go to the simulated system, which keeps the contract.
unsafe impl Pages for Hooked {
    fn page_size(&self) -> usize {
        self.system.page_size()
    }

    fn reserve(&self, size: usize, alignment: usize, access: Access) -> Option<NonNull<u8>> {
        self.system.reserve(size, alignment, access)
    }

    unsafe fn protect(&self, start: NonNull<u8>, size: usize, access: Access) -> bool {
        // SAFETY: this method's contract is that of the simulated system's method.
        unsafe { self.system.protect(start, size, access) }
    }

    unsafe fn purge(&self, start: NonNull<u8>, size: usize) -> bool {
        let hook = self
            .hook
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(hook) = hook {
            hook();
        }
        let first = start.addr().get();
        self.purged
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(first..first + size);
        // SAFETY: this method's contract is that of the simulated system's method.
        unsafe { self.system.purge(start, size) }
    }

    unsafe fn advise(&self, start: NonNull<u8>, size: usize, advice: Advice) -> bool {
        // SAFETY: this method's contract is that of the simulated system's method.
        unsafe { self.system.advise(start, size, advice) }
    }

    unsafe fn remap(
        &self,
        start: NonNull<u8>,
        size: usize,
        new_size: usize,
        how: Remap,
    ) -> Option<NonNull<u8>> {
        // SAFETY: this method's contract is that of the simulated system's method.
        unsafe { self.system.remap(start, size, new_size, how) }
    }

    unsafe fn release(&self, start: NonNull<u8>, size: usize) -> bool {
        // SAFETY: this method's contract is that of the simulated system's method.
        unsafe { self.system.release(start, size) }
    }
}

/// All back-ends. Without these references, Miri would report their memory as leaked.
static BACKENDS: Mutex<Vec<&Heaps<Hooked>>> = Mutex::new(Vec::new());

/// Returns a back-end that purges at every opportunity. It is never freed.
fn backend() -> &'static Heaps<Hooked> {
    backend_with(Settings {
        arena: 0,
        decay: 0,
        ..Settings::DEFAULT
    })
}

fn backend_with(settings: Settings) -> &'static Heaps<Hooked> {
    let backend: &Heaps<Hooked> = Box::leak(Box::new(Heaps::new(Hooked {
        system: Simulated::new(1 << 30),
        hook: Mutex::new(None),
        purged: Mutex::new(Vec::new()),
    })));
    BACKENDS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(backend);
    backend.start(|| settings);
    backend
}

fn class() -> SizeClass {
    SizeClass::of(1024)
}

/// Takes all blocks of a slab from the bin for threads without a heap. Returns their addresses.
fn slab_of_nobody(backend: &Heaps<Hooked>) -> Vec<usize> {
    let mut blocks = vec![null_mut(); usize::from(class().geometry().blocks)];
    let bin = backend.shards.bin_without_heap(class());
    let taken = backend.take(bin, &mut blocks[..]);
    assert_eq!(taken, blocks.len());
    let mut addresses: Vec<_> = blocks.iter().map(|block| block.addr()).collect();
    addresses.sort_unstable();
    addresses
}

/// Gives back the blocks at these addresses. Pointers without provenance suffice, since the
/// allocator dereferences none.
fn give(backend: &Heaps<Hooked>, addresses: &[usize]) {
    let mut blocks: Vec<*mut u8> = addresses
        .iter()
        .map(|&address| without_provenance_mut(address))
        .collect();
    let given = giving::give(backend, None, class(), &mut blocks);
    assert_eq!(given, Ok(()));
}

#[test]
fn no_bin_is_locked_while_the_pages_of_its_slabs_are_purged() {
    let backend = backend();
    let blocks = slab_of_nobody(backend);
    give(backend, &blocks[4..]);
    let bin = backend.shards.bin_without_heap(class());
    backend.memory().pages.before_purge(move || {
        assert!(bin.try_lock().is_some(), "others have to wait");
        // No thread takes blocks from the slab during the purge, and the slab stays in its bin.
        assert_eq!(slab_of_nobody(backend).len(), 64);
        give(backend, &blocks[..4]);
        assert_eq!(backend.shards.slabs(), 2);
    });
    while Snapshot::of(backend).purges == 0 {
        backend.tick();
    }
    backend.check();
    assert_eq!(
        backend.shards.slabs(),
        1,
        "a slab that became empty meanwhile has gone"
    );
    assert_eq!(backend.memory().pool.lock().live, Units::ONE);
}

#[test]
fn a_slab_is_purged_once_until_blocks_of_it_are_used_again() {
    let backend = backend();
    let blocks = slab_of_nobody(backend);
    give(backend, &blocks[4..]);
    while Snapshot::of(backend).purges == 0 {
        backend.tick();
    }
    let purged = Snapshot::of(backend).purged;
    assert_eq!(
        purged as usize,
        UNIT - 4096,
        "all but the page of four blocks"
    );
    (0..4).for_each(|_| backend.tick());
    assert!(!trim(backend, None, usize::MAX));
    assert_eq!(Snapshot::of(backend).purged, purged);
    let mut block = null_mut();
    let bin = backend.shards.bin_without_heap(class());
    assert_eq!(backend.take(bin, std::slice::from_mut(&mut block)), 1);
    give(backend, &[block.addr()]);
    assert!(trim(backend, None, usize::MAX));
    backend.check();
}

#[test]
fn what_lies_behind_the_blocks_that_are_used_of_a_slab_is_purged_once() {
    let backend = backend();
    let blocks = slab_of_nobody(backend);
    give(backend, &blocks[4..]);
    let bin = backend.shards.bin_without_heap(class());
    let turn = || {
        let mut few = [null_mut(); 8];
        let taken = backend.take(bin, &mut few[..]);
        assert_eq!(taken, 8);
        give(backend, &few.map(|block| block.addr()));
        backend.tick();
        let statistics = Snapshot::of(backend);
        (statistics.purges, statistics.purged as usize)
    };
    let unused = UNIT - 12 * class().size();
    let turns: Vec<_> = (0..6).map(|_| turn()).collect();
    assert_eq!(turns[..2], [(0, 0); 2]);
    assert_eq!(turns[2..], [(1, unused); 4]);
    // No thread takes further blocks, so all free blocks are idle.
    backend.tick();
    let purged = Snapshot::of(backend).purged as usize;
    assert_eq!(purged, unused + UNIT - 4 * class().size());
    backend.check();
}

#[test]
fn a_small_heap_keeps_little_that_is_idle() {
    let backend = backend();
    let run = backend
        .memory()
        .allocate_run(Units::new(16), UNIT)
        .expect("there is memory");
    // SAFETY: the run belongs to this test, which no longer uses it.
    backend
        .memory()
        .with_pool(|pool| unsafe { pool.free(run.base.as_ptr(), Units::new(16), true) });
    (0..3).for_each(|_| backend.tick());
    assert_eq!(
        backend.memory().pool.lock().dirty,
        Units::filled_by(256 << 10)
    );
    backend.check();
}

#[test]
fn what_comes_back_to_a_slab_that_nothing_was_taken_from_is_purged_in_the_same_epoch() {
    let backend = backend();
    let blocks = slab_of_nobody(backend);
    give(backend, &blocks[60..]);
    (0..3).for_each(|_| backend.tick());
    give(backend, &blocks[4..60]);
    assert_eq!(Snapshot::of(backend).purges, 0);
    backend.tick();
    let purged = Snapshot::of(backend).purged as usize;
    assert_eq!(purged, UNIT - 4 * class().size());
    backend.check();
}

#[test]
fn what_comes_back_behind_blocks_that_were_purged_is_purged_too() {
    let backend = backend();
    let blocks = slab_of_nobody(backend);
    let bin = backend.shards.bin_without_heap(class());
    give(backend, &blocks[..40]);
    while Snapshot::of(backend).purges == 0 {
        backend.tick();
    }
    let purged = Snapshot::of(backend).purged as usize;
    // After these two calls, the last free blocks are resident, and the number of free blocks is at
    // most the number that was purged.
    give(backend, &blocks[40..50]);
    let mut first = [null_mut(); 10];
    let taken = backend.take(bin, &mut first[..]);
    assert_eq!(taken, 10);
    (0..4).for_each(|_| backend.tick());
    let more = Snapshot::of(backend).purged as usize - purged;
    assert!(more >= 8 * class().size(), "{more}");
    (0..4).for_each(|_| backend.tick());
    assert_eq!(Snapshot::of(backend).purged as usize - purged, more, "once");
    backend.check();
}

#[test]
fn what_becomes_resident_with_a_run_is_made_way_for_and_not_purged_for_that() {
    let backend = backend_with(Settings {
        arena: 0,
        decay: u64::MAX,
        states: true,
        ..Settings::DEFAULT
    });
    // These idle units are too scattered for the next block. If blocks have states, huge pages
    // begin behind these units.
    let runs: Vec<_> = (0..32)
        .map(|_| {
            backend
                .memory()
                .allocate_run(Units::new(2), UNIT)
                .expect("there is memory")
        })
        .collect();
    for run in runs.iter().step_by(2) {
        // SAFETY: the run belongs to this test, which no longer uses it.
        backend
            .memory()
            .with_pool(|pool| unsafe { pool.free(run.base.as_ptr(), Units::new(2), true) });
    }
    assert_eq!(backend.memory().pool.lock().dirty, Units::new(32));
    let large = allocate_large(backend, 4 * UNIT, HUGE * UNIT);
    let first = large.expect("there is memory").block.addr().get();
    // A huge page becomes resident, so the same amount of scattered memory is purged, but an eighth
    // of live memory may stay idle.
    let kept = (32 + 4) / 8;
    let purged = Snapshot::of(backend).purged as usize;
    assert_eq!(purged, (32 - kept) * UNIT);
    assert_eq!(
        backend.memory().pool.lock().dirty,
        Units::new(HUGE - 4 + kept)
    );
    let ranges = backend.memory().pages.purged.lock();
    for range in ranges.unwrap_or_else(PoisonError::into_inner).iter() {
        assert!(range.end <= first || range.start >= first + HUGE * UNIT);
    }
    backend.check();
}

#[test]
fn empty_slabs_in_bins_make_way_for_a_mapping() {
    let backend = backend_with(Settings {
        arena: 0,
        // Whether they are requested depends on the process's page faults, and so on other tests.
        huge_pages: Some(false),
        ..Settings::DEFAULT
    });
    let heap = backend.attach().expect("there is memory");
    let bin = backend.bin(heap, class());
    let mut blocks = vec![null_mut(); 100 * usize::from(class().geometry().blocks)];
    for block in &mut blocks {
        assert_eq!(backend.take(bin, std::slice::from_mut(block)), 1);
    }
    giving::give(backend, Some(bin), class(), &mut blocks).expect("all were allocated");
    assert_eq!(bin.lock().empties, 100, "the bin keeps its empty slabs");
    let size = Units::new(LARGEST_RUN + 1).bytes();
    allocate_large(backend, size, 1).expect("there is memory");
    // 256 KiB may stay idle.
    assert_eq!(Snapshot::of(backend).purged as usize, (100 - 4) * UNIT);
    backend.check();
}

#[test]
fn an_arena_that_may_not_be_written_leaves_nothing_behind() {
    let backend = backend();
    backend.memory().pages.system.refuse_access(true);
    let before = backend.memory().pages.system.reserved();
    for _ in 0..70 {
        assert!(backend.memory().allocate_run(Units::new(1), UNIT).is_none());
    }
    assert_eq!(backend.memory().pages.system.reserved(), before);
    backend.memory().pages.system.refuse_access(false);
    assert!(backend.memory().allocate_run(Units::new(1), UNIT).is_some());
    backend.check();
}
