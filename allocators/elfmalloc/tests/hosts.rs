//! Threads beyond the number of hosts share the slabs of these, over simulated pages.

use std::iter::repeat_with;
use std::ptr;
use std::time::{Duration, Instant};

use heapdrome_elfmalloc::SizeClass;
use heapdrome_elfmalloc::heap::backend::Backend;
use heapdrome_elfmalloc::settings::Settings;
use heapdrome_elfmalloc::size_class::UNIT;
use heapdrome_elfmalloc::slabs::bin::Bin;
use heapdrome_pages::Simulated;

/// Far more than it takes, for machines with much else to do.
const PATIENCE: Duration = Duration::from_secs(30);

/// A back-end with so many hosts.
fn backend_with(hosts: usize) -> Backend<Simulated> {
    let backend = Backend::new(Simulated::new(1 << 30));
    backend.start(|| Settings {
        arena: 0,
        hosts,
        ..Settings::DEFAULT
    });
    backend
}

#[test]
fn guests_of_one_host_take_blocks_from_one_slab() {
    let backend = backend_with(1);
    let class = SizeClass::of(64);
    let heaps = [(); 3].map(|()| backend.attach().expect("there is memory"));
    // SAFETY: the heaps are this thread's, and their magazines are empty.
    let blocks = heaps.map(|heap| unsafe { backend.refill(heap, class) }.addr());
    assert!(blocks.iter().all(|block| block / UNIT == blocks[0] / UNIT));
    assert_eq!(backend.slabs(), 1);
    backend.check();
}

#[test]
fn each_host_has_as_many_guests() {
    let backend = backend_with(2);
    let class = SizeClass::of(64);
    let heaps = [(); 4].map(|()| backend.attach().expect("there is memory"));
    // SAFETY: the heaps are such.
    let mut bins = heaps.map(|heap| ptr::from_ref::<Bin>(unsafe { backend.bin(heap, class) }));
    bins.sort();
    assert!(bins[0] == bins[1] && bins[1] != bins[2] && bins[2] == bins[3]);
    // SAFETY: the heaps are this thread's, which uses these two no more.
    unsafe {
        for heap in heaps {
            if ptr::eq(backend.bin(heap, class), bins[0]) {
                backend.detach(heap);
            }
        }
    }
    let next = backend.attach().expect("there is memory");
    // SAFETY: the heap is one.
    assert!(ptr::eq(unsafe { backend.bin(next, class) }, bins[0]));
}

#[test]
fn slabs_stay_until_the_last_guest_leaves() {
    let backend = backend_with(1);
    let class = SizeClass::of(64);
    let [first, second] = [(); 2].map(|()| backend.attach().expect("there is memory"));
    // SAFETY: the heaps are this thread's until they are detached.
    unsafe {
        backend.refill(first, class);
        let bin = backend.bin(second, class);
        backend.detach(first);
        assert!(!bin.lock().idle);
        assert_eq!(bin.lock().slabs, 1, "its block is in use");
        backend.detach(second);
        assert!(bin.lock().idle);
        assert_eq!(bin.lock().slabs, 0, "others find it in the common bin");
    }
    backend.check();
    let third = backend.attach().expect("there is memory");
    // SAFETY: the heap is this thread's, and its magazine is empty.
    unsafe {
        assert!(!backend.bin(third, class).lock().idle);
        backend.refill(third, class);
    }
    assert_eq!(backend.slabs(), 1);
    backend.check();
}

#[test]
fn in_the_child_of_a_fork_the_host_keeps_its_one_guest() {
    let backend = backend_with(1);
    let class = SizeClass::of(64);
    let [_gone, own] = [(); 2].map(|()| backend.attach().expect("there is memory"));
    // SAFETY: the heap is this thread's, and there is no other thread.
    unsafe {
        backend.refill(own, class);
        backend.disown(Some(own));
        let bin = backend.bin(own, class);
        assert!(!bin.lock().idle);
        assert_eq!(bin.lock().slabs, 1);
        backend.detach(own);
        assert!(bin.lock().idle);
    }
    backend.check();
}

#[test]
fn a_thread_moves_to_a_host_that_others_left() {
    let backend = backend_with(2);
    let class = SizeClass::of(64);
    let heaps = [(); 4].map(|()| backend.attach().expect("there is memory"));
    // SAFETY: the heaps are this thread's, which uses two of them no more.
    unsafe {
        let bin_of = |heap| ptr::from_ref::<Bin>(backend.bin(heap, class));
        let first = bin_of(heaps[0]);
        let (gone, left): (Vec<_>, Vec<_>) = heaps.iter().partition(|heap| bin_of(**heap) == first);
        assert_eq!((gone.len(), left.len()), (2, 2));
        for heap in gone {
            backend.detach(heap);
        }
        assert_eq!(bin_of(left[0]), bin_of(left[1]));
        for heap in &left {
            (*heap.as_ptr()).looked = u64::MAX / 2;
            backend.look_around(*heap);
        }
        assert_ne!(bin_of(left[0]), bin_of(left[1]));
        assert!(
            left.iter()
                .all(|heap| !backend.bin(*heap, class).lock().idle)
        );
    }
    backend.check();
}

#[test]
fn more_processors_make_more_hosts_and_fewer_take_none_away() {
    let backend = backend_with(1);
    let class = SizeClass::of(64);
    let first = backend.attach().expect("there is memory");
    backend.widen(2);
    backend.widen(1);
    let second = backend.attach().expect("there is memory");
    // SAFETY: the heaps are such.
    let bins = unsafe { [first, second].map(|heap| backend.bin(heap, class)) };
    assert!(!ptr::eq(bins[0], bins[1]));
    assert!(!bins[1].lock().idle);
    backend.check();
}

#[test]
fn threads_beyond_the_number_of_hosts_use_the_host_of_their_processor() {
    let backend = backend_with(2);
    let class = SizeClass::of(64);
    let heaps = [(); 3].map(|()| backend.attach().expect("there is memory"));
    // SAFETY: the heaps are such.
    let bin_of = |heap| ptr::from_ref::<Bin>(unsafe { backend.bin(heap, class) });
    let own = heaps.map(bin_of);
    // Whose guest a thread is does not matter; each processor has one of the hosts, and keeps it.
    let mut on = [0, 1, 2, 3, 0].map(|processor| {
        backend.pages.set_processor(processor);
        let [first, second, third] = heaps.map(bin_of);
        assert!(first == second && second == third);
        first
    });
    assert_eq!(on[0], on[4]);
    on[..4].sort();
    assert!(on[0] == on[1] && on[1] != on[2] && on[2] == on[3]);
    // As many threads as hosts have what is theirs.
    // SAFETY: the heap is this thread's, which uses it no more.
    unsafe { backend.detach(heaps[2]) };
    for processor in 0..2 {
        backend.pages.set_processor(processor);
        assert_eq!(heaps.map(bin_of)[..2], own[..2]);
    }
    backend.check();
}

#[test]
fn a_host_without_guests_serves_no_processor() {
    let backend = backend_with(2);
    let class = SizeClass::of(64);
    let heaps = [(); 5].map(|()| backend.attach().expect("there is memory"));
    // SAFETY: the heaps are such.
    let bin_of = |heap| ptr::from_ref::<Bin>(unsafe { backend.bin(heap, class) });
    let own = heaps.map(bin_of);
    for processor in 0..2 {
        backend.pages.set_processor(processor);
        bin_of(heaps[0]);
    }
    // The host with three guests keeps them all, the other none.
    let many = heaps
        .iter()
        .zip(own)
        .filter(|(_, bin)| own.iter().filter(|other| *other == bin).count() == 3);
    let many: Vec<_> = many.map(|(heap, bin)| (*heap, bin)).collect();
    assert_eq!(many.len(), 3);
    for (heap, bin) in heaps.iter().zip(own) {
        if bin != many[0].1 {
            // SAFETY: the heap is this thread's, which uses it no more.
            unsafe { backend.detach(*heap) };
        }
    }
    for processor in 0..2 {
        backend.pages.set_processor(processor);
        assert!(many.iter().all(|(heap, bin)| bin_of(*heap) == *bin));
    }
    backend.check();
}

#[test]
fn processors_get_their_hosts_anew_when_there_is_one_more() {
    let backend = backend_with(1);
    let class = SizeClass::of(64);
    let attach = || backend.attach().expect("there is memory");
    let mut heaps = vec![attach(), attach()];
    let served = |heap, processor| {
        backend.pages.set_processor(processor);
        // SAFETY: the heap is one.
        ptr::from_ref::<Bin>(unsafe { backend.bin(heap, class) })
    };
    assert_eq!(served(heaps[0], 0), served(heaps[0], 1));
    backend.widen(2);
    heaps.push(attach());
    assert_ne!(served(heaps[0], 0), served(heaps[0], 1));
    backend.check();
}

#[test]
fn a_slab_that_is_added_when_the_last_guest_has_left_goes_where_others_find_it() {
    let backend = backend_with(1);
    let class = SizeClass::of(64);
    let heap = backend.attach().expect("there is memory");
    let mut block = ptr::null_mut();
    // SAFETY: the heap is this thread's, the bin one for the class, and there is one slot for one block.
    unsafe {
        let bin = backend.bin(heap, class);
        bin.lock().set_idle(true);
        assert_eq!(backend.take(bin, class, &raw mut block, 1), 1);
        assert_eq!(bin.lock().slabs, 0);
    }
    assert_eq!(backend.bins[class.number()].lock().slabs, 1);
    backend.check();
}

#[test]
fn where_memory_is_used_up_a_block_of_another_host_serves() {
    let backend = Backend::new(Simulated::new(4 << 20));
    backend.start(|| Settings {
        arena: 0,
        hosts: 2,
        ..Settings::DEFAULT
    });
    let class = SizeClass::of(if cfg!(miri) { 4096 } else { 1024 });
    let [first, second] = [(); 2].map(|()| backend.attach().expect("there is memory"));
    // SAFETY: the heaps are this thread's, their magazines are empty, and the blocks are the test's own.
    unsafe {
        let bin = backend.bin(first, class);
        let blocks = repeat_with(|| backend.take_one(bin, class));
        let mut blocks: Vec<_> = blocks.take_while(|block| !block.is_null()).collect();
        assert!(backend.refill(second, class).is_null());
        assert_eq!(backend.give(bin, class, &mut blocks[..1]), Ok(()));
        assert!(!backend.refill(second, class).is_null());
    }
    backend.check();
}

#[test]
fn nobody_looks_for_slabs_where_there_is_no_host() {
    let backend = backend_with(1);
    let class = SizeClass::of(64);
    let heaps = [(); 3].map(|()| backend.attach().expect("there is memory"));
    // SAFETY: heaps live for ever, and any thread may use bins.
    let own = heaps.map(|heap| unsafe { &(*heap.as_ptr()).bins[class.number()] });
    // SAFETY: the heaps are such.
    let host = unsafe { backend.bin(heaps[0], class) };
    // Whoever looked there would have to wait.
    let guests = own.iter().filter(|bin| !ptr::eq(**bin, host));
    let held: Vec<_> = guests.map(|bin| bin.lock()).collect();
    assert_eq!(held.len(), 2);
    std::thread::scope(|scope| {
        let looks = scope.spawn(|| {
            assert_eq!(backend.snapshot().all.live, 0);
            // SAFETY: this thread has no heap.
            unsafe { backend.trim(None, 0) }
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
