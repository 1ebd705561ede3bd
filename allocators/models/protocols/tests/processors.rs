//! Choice of bins while threads outnumber shards, over simulated pages: two processors are used for
//! the first time simultaneously, shards lose their last thread meanwhile, and shards are added.

use heapdrome_elfmalloc::heap::thread_heap::HeapRef;
use heapdrome_elfmalloc::heap::threads::detach;
use heapdrome_elfmalloc::process::statistics::Snapshot;
use heapdrome_elfmalloc::settings::Settings;
use heapdrome_elfmalloc::slabs::bin::ClassBin;
use heapdrome_elfmalloc::units::amount::Units;
use heapdrome_models::scene::{SETTINGS, Sent, Shared, give_all, new_backend, small, take};
use heapdrome_models::{join, model, nothing_in_advance, spawn};

/// Returns a back-end with at most `shards` shards, and the heaps of `THREADS` threads.
fn crowd<const THREADS: usize>(shards: usize) -> (Shared, [HeapRef; THREADS]) {
    let backend = new_backend();
    backend.start(|| Settings { shards, ..SETTINGS });
    let heaps = [(); THREADS].map(|()| backend.attach().expect("there is memory"));
    (backend, heaps)
}

fn bin_of(backend: &Shared, heap: HeapRef) -> ClassBin<'_> {
    backend.bin(heap, small())
}

/// Gives a block back as the heap's thread does on the current processor.
fn give_back(backend: &Shared, heap: HeapRef, block: *mut u8) {
    let home = Some(bin_of(backend, heap));
    give_all(backend, home, small(), &mut [block]);
}

/// Takes `count` blocks like the heap's thread on `processor`. Returns one of them, and gives the
/// others back.
fn turn(backend: &Shared, heap: HeapRef, processor: usize, count: usize) -> *mut u8 {
    backend.memory().pages.set_processor(processor);
    let mut blocks = take(backend, heap, small(), count);
    let last = blocks.pop().expect("a block");
    for block in blocks {
        give_back(backend, heap, block);
    }
    last
}

/// Ends the threads of these heaps, which are the last threads. Asserts that all units can then go
/// back to the pool.
fn end(backend: &Shared, heaps: &[HeapRef]) {
    for &heap in heaps {
        // SAFETY: the heap belongs to the model, which no longer uses it.
        unsafe { detach(backend, heap) };
    }
    backend.check();
    // A thread that used the shard of its processor may have left an empty slab there.
    backend.release_kept();
    assert_eq!(
        (backend.shards.slabs(), backend.memory().pool.lock().live),
        (0, Units::NONE)
    );
}

#[test]
fn two_processors_that_are_first_seen_at_once_get_a_shard_each() {
    model(1, || {
        let (backend, heaps) = crowd::<3>(2);
        let (other, heap) = (backend.clone(), Sent(heaps[1]));
        let handle = spawn(move || {
            let block = turn(&other, heap.get(), 1, 1);
            give_back(&other, heap.get(), block);
        });
        let block = turn(&backend, heaps[0], 0, 1);
        give_back(&backend, heaps[0], block);
        join(handle);
        let shards = [0, 1].map(|processor| {
            backend.memory().pages.set_processor(processor);
            bin_of(&backend, heaps[2])
        });
        assert!(shards[0] != shards[1]);
        end(&backend, &heaps);
    });
}

/// The last thread of a shard ends while another thread may be using its bins. Both threads use
/// their processors for the first time. The back-end's invariants must hold afterwards.
fn a_shard_loses_its_last_thread(processors: [usize; 2], preemptions: usize) {
    model(preemptions, move || {
        let (backend, heaps) = crowd::<5>(2);
        // Of the five threads, the second and the fourth are attached to the second shard.
        let [first, second, third, fourth, fifth] = heaps;
        // SAFETY: the heap belongs to the model, which no longer uses it.
        unsafe { detach(&backend, fourth) };
        let (other, last) = (backend.clone(), Sent(second));
        let handle = spawn(move || {
            let block = turn(&other, last.get(), processors[1], 1);
            give_back(&other, last.get(), block);
            // SAFETY: the heap belongs to this thread, which no longer uses it.
            unsafe { detach(&other, last.get()) };
        });
        let block = turn(&backend, third, processors[0], 2);
        join(handle);
        backend.check();
        give_back(&backend, third, block);
        end(&backend, &[first, third, fifth]);
    });
}

#[test]
fn a_shard_loses_its_last_thread_while_a_thread_on_its_processor_takes_blocks() {
    a_shard_loses_its_last_thread([0, 1], 1);
}

#[test]
fn it_does_so_where_both_are_on_one_processor() {
    a_shard_loses_its_last_thread([0, 0], 1);
}

#[test]
fn a_thread_finds_a_host_that_is_younger_than_its_heap() {
    model(2, || {
        let (backend, [first, second]) = crowd::<2>(1);
        // Use the back-end once before the threads start, because loom's atomics must be older than
        // the threads. Only the new heap is created later.
        let block = turn(&backend, first, 0, 1);
        give_back(&backend, first, block);
        // Taking a snapshot uses all locks, one after the other.
        let _statistics = Snapshot::of(&backend);
        backend.shards.widen(2);
        let other = backend.clone();
        let handle = spawn(move || {
            nothing_in_advance();
            other.memory().pages.set_processor(1);
            let heap = other.attach().expect("there is memory");
            bin_of(&other, heap);
            Sent(heap)
        });
        let block = turn(&backend, second, 1, 1);
        give_back(&backend, second, block);
        let third = join(handle).get();
        end(&backend, &[first, second, third]);
    });
}
