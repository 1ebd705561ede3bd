//! More threads than shards, over simulated pages.

mod giving;

use std::iter::repeat_with;
use std::ptr::{self, null_mut};
use std::time::{Duration, Instant};

use giving::give;
use heapdrome_elfmalloc::SizeClass;
use heapdrome_elfmalloc::heap::heaps::Heaps;
use heapdrome_elfmalloc::heap::maintenance::look_around;
use heapdrome_elfmalloc::heap::refill::refill;
use heapdrome_elfmalloc::heap::threads::detach;
use heapdrome_elfmalloc::heap::threads::trim;
use heapdrome_elfmalloc::misuse::Misuse;
use heapdrome_elfmalloc::process::statistics::Snapshot;
use heapdrome_elfmalloc::settings::Settings;
use heapdrome_elfmalloc::size_class::UNIT;
use heapdrome_elfmalloc::slabs::bin::Bin;
use heapdrome_elfmalloc::units::amount::Units;
use heapdrome_pages::Simulated;

/// Maximum time to wait: far more than necessary, for busy machines.
const PATIENCE: Duration = Duration::from_secs(30);

/// Returns a back-end with at most `shards` shards.
fn backend_with(shards: usize) -> Heaps<Simulated> {
    let backend = Heaps::new(Simulated::new(1 << 30));
    backend.start(|| Settings {
        arena: 0,
        shards,
        ..Settings::DEFAULT
    });
    backend
}

#[test]
fn threads_of_one_shard_take_blocks_from_one_slab() {
    let backend = backend_with(1);
    let class = SizeClass::of(64);
    let heaps = [(); 3].map(|()| backend.attach().expect("there is memory"));
    let blocks = heaps.map(|heap| refill(&backend, heap, class).addr());
    assert!(blocks.iter().all(|block| block / UNIT == blocks[0] / UNIT));
    assert_eq!(backend.shards.slabs(), 1);
    backend.check();
}

#[test]
fn each_shard_has_as_many_threads() {
    let backend = backend_with(2);
    let class = SizeClass::of(64);
    let heaps = [(); 4].map(|()| backend.attach().expect("there is memory"));
    let mut bins = heaps.map(|heap| ptr::from_ref::<Bin>(&*backend.bin(heap, class)));
    bins.sort();
    assert!(bins[0] == bins[1] && bins[1] != bins[2] && bins[2] == bins[3]);
    // SAFETY: the heaps belong to this thread, which no longer uses the detached ones.
    unsafe {
        for heap in heaps {
            if ptr::eq(&*backend.bin(heap, class), bins[0]) {
                detach(&backend, heap);
            }
        }
    }
    let next = backend.attach().expect("there is memory");
    assert!(ptr::eq(&*backend.bin(next, class), bins[0]));
}

#[test]
fn slabs_of_a_shard_without_threads_serve_other_threads() {
    let backend = backend_with(2);
    let class = SizeClass::of(64);
    let [first, second] = [(); 2].map(|()| backend.attach().expect("there is memory"));
    let bin = backend.bin(first, class);
    refill(&backend, first, class);
    refill(&backend, second, class);
    assert_eq!(bin.lock().slabs, 1, "its thread uses it");
    let third = [(); 2].map(|()| backend.attach().expect("there is memory"))[0];
    // SAFETY: the heaps belong to this thread, which only reads their attachments after they are
    // detached.
    unsafe {
        detach(&backend, first);
        assert_eq!(bin.lock().slabs, 1, "its block is in use");
        detach(&backend, third);
    }
    assert_eq!(first.attachment().shard().attached(), 0);
    assert_eq!(
        bin.lock().slabs,
        1,
        "a slab stays where it is until it is needed"
    );
    let home = backend.bin(second, class);
    let mut blocks = [null_mut(); 1024];
    let own = backend.take(home, &mut blocks);
    assert_ne!(own, 0, "the rest of its own slab");
    let taken = own + backend.take(home, &mut blocks[own..=own]);
    assert_eq!(bin.lock().slabs, 0, "another thread has moved it");
    assert_eq!(backend.shards.slabs(), 2);
    give(&backend, Some(home), class, &mut blocks[..taken]).expect("blocks in use");
    backend.check();
}

#[test]
fn empty_slabs_of_the_last_thread_go_to_the_pool() {
    let backend = backend_with(1);
    let class = SizeClass::of(64);
    let heap = backend.attach().expect("there is memory");
    let bin = backend.bin(heap, class);
    let mut block = [null_mut()];
    assert_eq!(backend.take(bin, &mut block), 1);
    give(&backend, Some(bin), class, &mut block).expect("a block in use");
    assert_eq!(bin.lock().empties, 1);
    // SAFETY: the heap belongs to this thread, which no longer uses it.
    unsafe { detach(&backend, heap) };
    assert_eq!(backend.shards.slabs(), 0);
    backend.check();
}

#[test]
fn empty_slabs_make_way_for_a_larger_slab_though_scattered_units_are_dirty() {
    let backend = backend_with(1);
    let heap = backend.attach().expect("there is memory");
    let memory = backend.memory();
    let runs = repeat_with(|| memory.allocate_run(Units::ONE, UNIT).expect("a unit"));
    let runs: Vec<_> = runs.take(16).collect();
    let class = SizeClass::of(2048);
    let bin = backend.bin(heap, class);
    let mut blocks = [null_mut(); 32 * 16];
    for slab in blocks.chunks_mut(32) {
        assert_eq!(backend.take(bin, slab), 32, "all of a slab's");
    }
    give(&backend, Some(bin), class, &mut blocks).expect("blocks in use");
    assert_ne!(bin.lock().empties, 0, "its empty slabs stay");
    for run in runs.iter().step_by(2) {
        // SAFETY: the unit belongs to this test, which no longer uses it.
        memory.with_pool(|pool| unsafe { pool.free(run.base.as_ptr(), Units::ONE, true) });
    }
    let larger = SizeClass::of(9000);
    assert!(Units::of_slab(larger) > Units::ONE, "no single unit serves");
    let before = memory.live_units();
    assert!(!backend.take_one(backend.bin(heap, larger)).is_null());
    assert_eq!(bin.lock().empties, 0, "they went to the pool");
    assert!(memory.live_units() < before);
    backend.check();
}

#[test]
fn in_the_child_of_a_fork_the_shard_keeps_its_one_thread() {
    let backend = backend_with(1);
    let class = SizeClass::of(64);
    let [_gone, own] = [(); 2].map(|()| backend.attach().expect("there is memory"));
    // SAFETY: there is no other thread. The heap belongs to this thread, which only reads its
    // attachment after it is detached.
    unsafe {
        refill(&backend, own, class);
        backend.disown(Some(own));
        let bin = backend.bin(own, class);
        assert_eq!(own.attachment().shard().attached(), 1);
        assert_eq!(bin.lock().slabs, 1);
        detach(&backend, own);
        assert_eq!(own.attachment().shard().attached(), 0);
    }
    backend.check();
}

#[test]
fn a_thread_moves_to_a_shard_that_others_left() {
    let backend = backend_with(2);
    let class = SizeClass::of(64);
    let heaps = [(); 4].map(|()| backend.attach().expect("there is memory"));
    // SAFETY: the heaps belong to this thread, which no longer uses the detached ones.
    unsafe {
        let bin_of = |heap| ptr::from_ref::<Bin>(&*backend.bin(heap, class));
        let first = bin_of(heaps[0]);
        let (gone, left): (Vec<_>, Vec<_>) = heaps.iter().partition(|heap| bin_of(**heap) == first);
        assert_eq!((gone.len(), left.len()), (2, 2));
        for heap in gone {
            detach(&backend, heap);
        }
        assert_eq!(bin_of(left[0]), bin_of(left[1]));
        for heap in &left {
            heap.looked.set(u64::MAX / 2);
            look_around(&backend, *heap);
        }
        assert_ne!(bin_of(left[0]), bin_of(left[1]));
    }
    backend.check();
}

#[test]
fn more_processors_make_more_shards_and_fewer_take_none_away() {
    let backend = backend_with(1);
    let class = SizeClass::of(64);
    let first = backend.attach().expect("there is memory");
    backend.shards.widen(2);
    backend.shards.widen(1);
    let second = backend.attach().expect("there is memory");
    let bins = [first, second].map(|heap| backend.bin(heap, class));
    assert!(bins[0] != bins[1]);
    backend.check();
}

#[test]
fn threads_beyond_the_number_of_shards_use_the_shard_of_their_processor() {
    let backend = backend_with(2);
    let class = SizeClass::of(64);
    let heaps = [(); 3].map(|()| backend.attach().expect("there is memory"));
    let bin_of = |heap| ptr::from_ref::<Bin>(&*backend.bin(heap, class));
    let own = heaps.map(bin_of);
    // The shard to which a thread is attached does not matter: each processor is assigned one of
    // the shards, and keeps it.
    let mut on = [0, 1, 2, 3, 0].map(|processor| {
        backend.memory().pages.set_processor(processor);
        let [first, second, third] = heaps.map(bin_of);
        assert!(first == second && second == third);
        first
    });
    assert_eq!(on[0], on[4]);
    on[..4].sort();
    assert!(on[0] == on[1] && on[1] != on[2] && on[2] == on[3]);
    // Without this heap, there are as many threads as shards, so threads use their own shards
    // again.
    // SAFETY: the heap belongs to this thread, which no longer uses it.
    unsafe { detach(&backend, heaps[2]) };
    for processor in 0..2 {
        backend.memory().pages.set_processor(processor);
        assert_eq!(heaps.map(bin_of)[..2], own[..2]);
    }
    backend.check();
}

#[test]
fn processors_get_their_shards_anew_when_there_is_one_more() {
    let backend = backend_with(1);
    let class = SizeClass::of(64);
    let attach = || backend.attach().expect("there is memory");
    let mut heaps = vec![attach(), attach()];
    let served = |heap, processor| {
        backend.memory().pages.set_processor(processor);
        ptr::from_ref::<Bin>(&*backend.bin(heap, class))
    };
    assert_eq!(served(heaps[0], 0), served(heaps[0], 1));
    backend.shards.widen(2);
    heaps.push(attach());
    assert_ne!(served(heaps[0], 0), served(heaps[0], 1));
    backend.check();
}

#[test]
fn where_memory_is_used_up_a_block_of_another_shard_serves() {
    let backend = Heaps::new(Simulated::new(4 << 20));
    backend.start(|| Settings {
        arena: 0,
        shards: 2,
        ..Settings::DEFAULT
    });
    let class = SizeClass::of(if cfg!(miri) { 4096 } else { 1024 });
    let [first, second] = [(); 2].map(|()| backend.attach().expect("there is memory"));
    let bin = backend.bin(first, class);
    let blocks = repeat_with(|| backend.take_one(bin));
    let mut blocks: Vec<_> = blocks.take_while(|block| !block.is_null()).collect();
    assert!(refill(&backend, second, class).is_null());
    assert_eq!(give(&backend, Some(bin), class, &mut blocks[..1]), Ok(()));
    assert!(!refill(&backend, second, class).is_null());
    backend.check();
}

#[test]
fn nobody_looks_for_slabs_where_there_is_no_shard() {
    let backend = backend_with(1);
    let class = SizeClass::of(64);
    let heaps = [(); 3].map(|()| backend.attach().expect("there is memory"));
    let own = heaps.map(|heap| &heap.attachment().own().get().bins[class.number()]);
    let listed = backend.bin(heaps[0], class);
    // A thread that looks for slabs in these bins has to wait for their locks.
    let unlisted = own.iter().filter(|bin| !ptr::eq(**bin, &*listed));
    let held: Vec<_> = unlisted.map(|bin| bin.lock()).collect();
    assert_eq!(held.len(), 2);
    std::thread::scope(|scope| {
        let looks = scope.spawn(|| {
            assert_eq!(Snapshot::of(&backend).all.live, 0);
            trim(&backend, None, 0)
        });
        let begin = Instant::now();
        while !looks.is_finished() && begin.elapsed() < PATIENCE {
            std::thread::yield_now();
        }
        let has_waited = !looks.is_finished();
        drop(held);
        assert!(!has_waited);
    });
    backend.check();
}

#[test]
fn a_second_free_of_a_block_whose_slab_was_retired_is_found() {
    let backend = backend_with(2);
    let class = SizeClass::of(1024);
    let block = backend.take_without_heap(class);
    let free = || give(&backend, None, class, &mut [block]);
    assert_eq!(free(), Ok(()));
    assert_eq!(backend.shards.slabs(), 0, "the slab was retired");
    assert_eq!(free(), Err(Misuse::NotABlock(block.addr())));
    backend.check();
}
