//! The back-end in the child of a fork, over simulated pages.

mod small_arenas;

use std::mem::forget;

use heapdrome_elfmalloc::SizeClass;
use heapdrome_elfmalloc::heap::refill::refill;
use heapdrome_elfmalloc::process::statistics::Snapshot;
use small_arenas::backend;

#[test]
fn in_the_child_every_lock_is_free() {
    let backend = backend(1 << 30);
    let class = SizeClass::of(64);
    let heap = backend.attach().expect("there is memory");
    let (bin, depot) = (backend.bin(heap, class), heap.depot());
    // A thread of the parent that reads statistics may hold some of these locks when the process
    // forks.
    forget(bin.lock());
    forget(depot.lock());
    forget(backend.shards.bin_without_heap(class).lock());
    forget((backend.memory().pool.lock(), backend.mapped.table.lock()));
    forget(backend.memory().structures.lock());
    // SAFETY: the guards are forgotten, nothing was being changed, and there is no other thread.
    // The heap stands for that of a thread of the parent.
    unsafe {
        backend.free_locks();
        backend.disown(None);
    }
    assert!(bin.try_lock().is_some() && depot.try_lock().is_some());
    let _statistics = Snapshot::of(&backend);
    backend.check();
}

#[test]
fn a_heap_of_a_thread_that_the_child_does_not_have_serves_the_next_thread() {
    let backend = backend(1 << 30);
    let gone = backend.attach().expect("there is memory");
    let own = backend.attach().expect("there is memory");
    // SAFETY: there is no other thread, and `gone` stands for the heap of a thread of the parent.
    unsafe {
        refill(&backend, gone, SizeClass::of(64));
        backend.disown(Some(own));
    }
    assert_eq!(backend.attach(), Some(gone));
    backend.check();
}
