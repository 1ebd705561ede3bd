//! elfmalloc's back-end over simulated pages: slabs whose blocks are freed by two threads or while
//! they change bins, bins that threads share, threads that start and end, the number of processors,
//! and look-ups of addresses while arenas are added.

use std::ptr::NonNull;

use heapdrome_elfmalloc::SizeClass;
use heapdrome_elfmalloc::heap::threads::detach;
use heapdrome_elfmalloc::settings::Settings;
use heapdrome_elfmalloc::size_class::UNIT;
use heapdrome_elfmalloc::units::amount::Units;
use heapdrome_elfmalloc::units::arena::Arena;
use heapdrome_elfmalloc::units::class_map::ClassMap;
use heapdrome_elfmalloc::units::descriptor::DescriptorRef;
use heapdrome_elfmalloc::units::directory::Directory;
use heapdrome_models::scene::{
    SETTINGS, Sent, Shared, backend, give, give_all, new_backend, small, take,
};
use heapdrome_models::{Watched, join, model, spawn};
use heapdrome_pages::{Placed, Simulated};
use std::sync::Arc;

fn class() -> SizeClass {
    // A class with few blocks in a slab, so that few steps fill a slab.
    SizeClass::of(32 << 10)
}

/// Two threads free the two live blocks of a slab. The slab must go back to the pool exactly once.
fn last_frees(class: SizeClass, preemptions: usize) {
    model(preemptions, move || {
        let backend = backend();
        let heap = backend.attach().expect("there is memory");
        let blocks = take(&backend, heap, class, 2);
        let (other, block) = (backend.clone(), Sent(blocks[0]));
        let handle = spawn(move || give(&other, class, block.get()));
        give(&backend, class, blocks[1]);
        join(handle);
        assert_eq!(backend.shards.slabs(), 0);
        backend.check();
    });
}

#[test]
fn a_slab_whose_last_blocks_two_threads_free_goes_back_once() {
    last_frees(small(), 2);
}

#[test]
fn so_does_one_of_a_bin_that_all_threads_share() {
    last_frees(class(), 2);
}

/// A thread frees one of the `blocks` blocks that an ended thread has left, while another thread
/// moves their slab to its own bin. The slab must go back to the pool after the last free.
fn freed_while_its_slab_is_adopted(blocks: usize) {
    model(2, move || {
        let backend = new_backend();
        backend.start(|| Settings {
            shards: 2,
            ..SETTINGS
        });
        let heaps = [backend.attach(), backend.attach()].map(|heap| heap.expect("memory"));
        let mut blocks = take(&backend, heaps[0], small(), blocks);
        // SAFETY: the heap belongs to this thread, which no longer uses it.
        unsafe { detach(&backend, heaps[0]) };
        let (other, block) = (backend.clone(), blocks.pop().map(Sent));
        let handle = spawn(move || give(&other, small(), block.expect("a block").get()));
        blocks.push(take(&backend, heaps[1], small(), 1)[0]);
        join(handle);
        backend.check();
        for block in blocks {
            give(&backend, small(), block);
        }
        backend.check();
        assert_eq!(backend.shards.slabs(), 0);
    });
}

#[test]
fn a_block_is_freed_while_its_slab_is_adopted() {
    freed_while_its_slab_is_adopted(2);
}

#[test]
fn the_last_block_is_freed_while_its_slab_is_adopted() {
    freed_while_its_slab_is_adopted(1);
}

#[test]
fn two_threads_take_different_blocks_of_a_bin_that_they_share() {
    model(2, || {
        let backend = backend();
        let heaps = [backend.attach(), backend.attach()].map(|heap| heap.expect("memory"));
        let (other, heap) = (backend.clone(), Sent(heaps[1]));
        let handle = spawn(move || Sent(take(&other, heap.get(), class(), 1)[0]));
        let mine = take(&backend, heaps[0], class(), 1)[0];
        let theirs = join(handle).get();
        assert_ne!(mine, theirs);
        give(&backend, class(), mine);
        give(&backend, class(), theirs);
        backend.check();
        assert_eq!(backend.shards.slabs(), 0);
    });
}

/// A thread ends while another thread frees one of its blocks. The slab must go back to the pool
/// after the last free, and a new thread must get the heap.
fn exit_and_free(preemptions: usize) {
    model(preemptions, || {
        let backend = backend();
        let heap = backend.attach().expect("there is memory");
        let blocks = take(&backend, heap, small(), 2);
        let (other, block) = (backend.clone(), Sent(blocks[0]));
        let handle = spawn(move || give(&other, small(), block.get()));
        // SAFETY: the heap belongs to this thread, which no longer uses it.
        unsafe { detach(&backend, heap) };
        join(handle);
        backend.check();
        give(&backend, small(), blocks[1]);
        assert_eq!(backend.shards.slabs(), 0);
        assert_eq!(backend.attach(), Some(heap), "heaps are used again");
    });
}

#[test]
fn a_thread_ends_while_its_block_is_freed() {
    exit_and_free(1);
}

#[test]
#[ignore = "minutes: see docs/testing.md"]
fn a_thread_ends_while_its_block_is_freed_in_more_orders() {
    exit_and_free(2);
}

#[test]
fn a_thread_that_kept_an_empty_slab_ends_while_its_block_is_freed() {
    model(1, || {
        let backend = backend();
        let heap = backend.attach().expect("there is memory");
        let blocks = usize::from(small().geometry().blocks);
        let mut taken = take(&backend, heap, small(), blocks + 1);
        let last = Sent(taken.pop().expect("a block of the second slab"));
        let bin = backend.bin(heap, small());
        give_all(&backend, Some(bin), small(), &mut taken);
        assert_eq!(backend.shards.slabs(), 2, "the empty one is kept");
        let other = backend.clone();
        let handle = spawn(move || give(&other, small(), last.get()));
        // SAFETY: the heap belongs to this thread, which no longer uses it.
        unsafe { detach(&backend, heap) };
        join(handle);
        backend.check();
        assert_eq!(backend.shards.slabs(), 0);
    });
}

#[test]
fn threads_that_come_and_go_have_different_heaps() {
    model(1, || {
        let backend = backend();
        let used = Arc::new([Watched::default(), Watched::default()]);
        let first = backend.attach().expect("there is memory");
        let second = backend.attach().expect("there is memory");
        // SAFETY: the heaps belong to this thread, which no longer uses them.
        unsafe {
            detach(&backend, first);
            detach(&backend, second);
        }
        let (other, theirs) = (backend.clone(), used.clone());
        let first = Sent(first);
        let run = move |backend: Shared, used: Arc<[Watched; 2]>| {
            let heap = backend.attach().expect("there is memory");
            used[usize::from(heap == first.get())].touch();
            // SAFETY: the heap belongs to this thread, which no longer uses it.
            unsafe { detach(&backend, heap) };
        };
        let handle = spawn(move || run(other, theirs));
        run(backend.clone(), used);
        join(handle);
        backend.check();
    });
}

#[test]
fn the_most_processors_count_of_what_two_threads_say() {
    model(3, || {
        let backend = new_backend();
        backend.start(|| Settings {
            shards: 1,
            ..SETTINGS
        });
        let other = backend.clone();
        let handle = spawn(move || other.shards.widen(4));
        backend.shards.widen(2);
        join(handle);
        assert_eq!(backend.shards.most(), 4);
    });
}

#[test]
fn who_purges_in_silence_hears_that_the_last_thread_ends() {
    model(1, || {
        let backend = backend();
        let heap = Sent(backend.attach().expect("there is memory"));
        let other = backend.clone();
        // SAFETY: the heap belongs to that thread, which no longer uses it.
        let handle = spawn(move || unsafe { detach(&other, heap.get()) });
        // No time passes in models, so a thread that misses its wakeup would sleep for ever.
        while backend.rest(1) {}
        join(handle);
    });
}

#[test]
fn addresses_are_looked_up_while_arenas_are_added() {
    model(3, || {
        let pages = Simulated::new(64 << 20);
        let mut arenas = [0, 1].map(|_| Arena::reserve(&pages, 4 << 20, false).expect("memory"));
        for arena in &mut arenas {
            assert_eq!(arena.commit(&pages, 2), Placed::Done);
        }
        let directory = Arc::new(Directory::new());
        let wanted = arenas.each_ref().map(|arena| {
            let address = arena.address(1).addr().get();
            (address, arena.descriptor(1).addr())
        });
        let other = directory.clone();
        let handle = spawn(move || {
            for (address, slab) in wanted {
                let found = other.run_of(address).map(DescriptorRef::addr);
                assert!(found.is_none_or(|found| found == slab));
            }
            assert!(other.run_of(8).is_none());
        });
        for arena in &arenas {
            directory.add(arena);
        }
        join(handle);
        assert!(wanted.iter().all(|&(address, slab)| {
            directory
                .run_of(address)
                .is_some_and(|run| run.addr() == slab)
        }));
    });
}

#[test]
fn whoever_gets_a_block_sees_its_class_and_everybody_else_sees_none() {
    model(3, || {
        let (map, pages) = (Arc::new(ClassMap::new()), Simulated::new(1 << 20));
        let base = NonNull::without_provenance(std::num::NonZero::new(1 << 40).expect("not zero"));
        let handed_over = Arc::new(heapdrome_pages::Lock::new(false));
        let (other, taken) = (map.clone(), handed_over.clone());
        let handle = spawn(move || {
            // The map may start before, during or after these lookups. The second address lies in
            // the map's arena, the first does not.
            assert_eq!(other.get(4096), SizeClass::NONE);
            assert_eq!(other.get((1 << 40) + 100 * UNIT), SizeClass::NONE);
            if *taken.lock() {
                assert_eq!(other.get((1 << 40) + UNIT + 5), small());
            }
        });
        assert!(map.start(&pages, base, 64 << 20));
        map.set(base, Units::new(2), small());
        *handed_over.lock() = true;
        join(handle);
    });
}
