//! Whose bins a thread uses where threads are more than hosts, over simulated pages: processors on which threads are
//! seen for the first time at once, hosts that lose their last guest meanwhile, hosts that are new.

use std::ptr::NonNull;

use heapdrome_elfmalloc::slabs::bin::Bin;
use heapdrome_elfmalloc::heap::front::ThreadHeap;
use heapdrome_elfmalloc::settings::Settings;
use heapdrome_models::scene::{SETTINGS, Sent, Shared, new_backend, small, take};
use heapdrome_models::{join, model, nothing_in_advance, spawn};

/// A back-end with so many hosts, and heaps of so many threads.
fn crowd<const THREADS: usize>(hosts: usize) -> (Shared, [NonNull<ThreadHeap>; THREADS]) {
    let backend = new_backend();
    backend.start(|| Settings { hosts, ..SETTINGS });
    let heaps = [(); THREADS].map(|()| backend.attach().expect("there is memory"));
    (backend, heaps)
}

fn bin_of(backend: &Shared, heap: NonNull<ThreadHeap>) -> &Bin {
    // SAFETY: the heap is one.
    unsafe { backend.bin(heap, small()) }
}

/// Gives a block back as the heap's thread does, where it runs now.
fn give_back(backend: &Shared, heap: NonNull<ThreadHeap>, block: *mut u8) {
    // SAFETY: models give up what they took; the bin is one for the class.
    let given = unsafe { backend.give(bin_of(backend, heap), small(), &mut [block]) };
    assert_eq!(given, Ok(()));
}

/// A thread on that processor takes some blocks. Returns one; the others come back.
fn turn(backend: &Shared, heap: NonNull<ThreadHeap>, processor: usize, count: usize) -> *mut u8 {
    backend.pages.set_processor(processor);
    let mut blocks = take(backend, heap, small(), count);
    let last = blocks.pop().expect("a block");
    for block in blocks {
        give_back(backend, heap, block);
    }
    last
}

/// The threads of these heaps end, the last ones. The pool has all units then.
fn end(backend: &Shared, heaps: &[NonNull<ThreadHeap>]) {
    for &heap in heaps {
        // SAFETY: the heap is the model's, which uses it no more.
        unsafe { backend.detach(heap) };
    }
    backend.check();
    assert_eq!((backend.slabs(), backend.pool.lock().live), (0, 0));
}

/// What a host without guests has is full: a slab with a free block lies where others find it.
fn check_idle(backend: &Shared) {
    for host in backend.all_hosts() {
        // SAFETY: heaps live for ever, and bins may be used by any thread.
        for bin in unsafe { &(*host.as_ptr()).bins } {
            let slabs = bin.lock();
            slabs.each_partial(|_| assert!(!slabs.idle, "nobody finds the slab"));
        }
    }
}

#[test]
fn two_processors_that_are_first_seen_at_once_get_a_host_each() {
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
        let hosts = [0, 1].map(|processor| {
            backend.pages.set_processor(processor);
            bin_of(&backend, heaps[2])
        });
        assert!(!std::ptr::eq(hosts[0], hosts[1]));
        end(&backend, &heaps);
    });
}

/// The last guest of a host ends while another thread may be using its bins. Both are seen on their processors for the
/// first time.
fn a_host_loses_its_last_guest(processors: [usize; 2], preemptions: usize) {
    model(preemptions, move || {
        let (backend, heaps) = crowd::<5>(2);
        // Of the five, the second and the fourth are guests of the second host.
        let [first, second, third, fourth, fifth] = heaps;
        // SAFETY: the heap is the model's, which uses it no more.
        unsafe { backend.detach(fourth) };
        let (other, last) = (backend.clone(), Sent(second));
        let handle = spawn(move || {
            let block = turn(&other, last.get(), processors[1], 1);
            give_back(&other, last.get(), block);
            // SAFETY: the heap is this thread's, which uses it no more.
            unsafe { other.detach(last.get()) };
        });
        let block = turn(&backend, third, processors[0], 2);
        join(handle);
        backend.check();
        check_idle(&backend);
        give_back(&backend, third, block);
        end(&backend, &[first, third, fifth]);
    });
}

#[test]
fn a_host_loses_its_last_guest_while_a_thread_on_its_processor_takes_blocks() {
    a_host_loses_its_last_guest([0, 1], 1);
}

#[test]
fn it_does_so_where_both_are_on_one_processor() {
    a_host_loses_its_last_guest([0, 0], 1);
}

#[test]
fn a_thread_finds_a_host_that_is_younger_than_its_heap() {
    model(2, || {
        let (backend, [first, second]) = crowd::<2>(1);
        // What both threads use from here on is older than they are, but for what belongs to the new heap.
        let block = turn(&backend, first, 0, 1);
        give_back(&backend, first, block);
        // It takes all locks, one after the other.
        let _statistics = backend.snapshot();
        backend.widen(2);
        let other = backend.clone();
        let handle = spawn(move || {
            nothing_in_advance();
            other.pages.set_processor(1);
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
