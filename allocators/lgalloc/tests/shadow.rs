//! Tests of random operations, checked against a shadow (overlap, alignment, capacity and
//! contents), and of requests at and beyond the limits.

#[path = "support/draw.rs"]
mod draw;

use draw::Draw;
use heapdrome_lgalloc::{AllocError, Handle, UNIT, allocate, deallocate, stats};

impl Draw {
    fn size(&mut self) -> usize {
        let largest = UNIT << self.below(4);
        1 + self.below(largest)
    }
}

struct Live {
    handle: Handle,
    tag: u64,
}

fn words(handle: &Handle) -> (*mut u64, usize) {
    (handle.start().as_ptr().cast(), handle.bytes() / 8)
}

/// Writes a tag at both ends and in the middle of a region.
fn mark(live: &Live) {
    let (start, count) = words(&live.handle);
    for at in [0, count / 2, count - 1] {
        // SAFETY: the handle owns its region, which has `count` words.
        unsafe { start.add(at).write(live.tag) };
    }
}

fn check(live: &Live, places: &[usize]) {
    let (start, _) = words(&live.handle);
    for at in places {
        // SAFETY: the handle owns its region, and the word lies in it and was written by `mark`.
        let found = unsafe { start.add(*at).read() };
        assert_eq!(found, live.tag, "another region wrote here");
    }
}

fn step(draw: &mut Draw, all: &mut Vec<Live>, tag: u64) {
    let choice = draw.below(10);
    if all.is_empty() || (choice < 5 && all.len() < 40) {
        let bytes = draw.size();
        let (start, capacity, handle) = allocate::<u8>(bytes).expect("memory");
        assert!(capacity >= bytes && capacity == handle.bytes());
        assert_eq!(start.as_ptr().addr() % UNIT, 0);
        for other in &*all {
            let (a, b) = (start.as_ptr().addr(), other.handle.start().as_ptr().addr());
            assert!(
                a + capacity <= b || b + other.handle.bytes() <= a,
                "overlap"
            );
        }
        all.push(Live { handle, tag });
        mark(all.last().expect("just pushed"));
        return;
    }
    let at = draw.below(all.len());
    let count = words(&all[at].handle).1;
    check(&all[at], &[0, count / 2, count - 1]);
    if choice < 8 {
        deallocate(all.swap_remove(at).handle);
        return;
    }
    let wanted = draw.size();
    all[at].handle.resize::<u8>(wanted).expect("memory");
    assert!(all[at].handle.bytes() >= wanted);
    check(&all[at], &[0]);
    mark(&all[at]);
}

fn run(seed: u64, steps: u64) {
    let mut draw = Draw(seed);
    let mut all = Vec::new();
    for tag in 0..steps {
        step(&mut draw, &mut all, seed << 32 | tag);
    }
    for live in all {
        deallocate(live.handle);
    }
}

#[test]
fn regions_never_overlap_and_keep_what_is_written() {
    let threads: Vec<_> = (1..5_u64)
        .map(|seed| std::thread::spawn(move || run(seed * 7919, 800)))
        .collect();
    for thread in threads {
        thread.join().expect("no thread fails");
    }
}

#[test]
fn regions_move_between_threads() {
    let (send, receive) = std::sync::mpsc::sync_channel::<Live>(16);
    let consumer = std::thread::spawn(move || {
        for live in receive {
            check(&live, &[0]);
            deallocate(live.handle);
        }
    });
    for tag in 0..2000 {
        let (_, _, handle) = allocate::<u64>(1).expect("memory");
        let live = Live { handle, tag };
        mark(&live);
        send.send(live).expect("the consumer lives");
    }
    drop(send);
    consumer.join().expect("no thread fails");
    let reserved = stats().reserved_bytes;
    assert!(
        reserved <= 4 << 30,
        "{reserved} bytes reserved for 17 regions of 2 MiB at a time"
    );
}

#[test]
fn threads_come_and_go() {
    for round in 0..100_u64 {
        let threads: Vec<_> = (0..4)
            .map(|number| std::thread::spawn(move || run(round * 4 + number + 1, 6)))
            .collect();
        for thread in threads {
            thread.join().expect("no thread fails");
        }
    }
}

#[test]
fn sizes_that_overflow_or_fit_no_class_are_refused() {
    assert_eq!(
        allocate::<u64>(usize::MAX).err(),
        Some(AllocError::TooLarge)
    );
    assert_eq!(
        allocate::<u64>(usize::MAX / 8 + 2).err(),
        Some(AllocError::TooLarge)
    );
    assert_eq!(
        allocate::<u8>((64 << 30) + 1).err(),
        Some(AllocError::TooLarge)
    );
    #[repr(align(4194304))]
    struct Wide(#[allow(dead_code)] u8);
    assert_eq!(
        allocate::<Wide>(1).err(),
        Some(AllocError::Alignment(4 << 20))
    );
}

#[test]
fn nothing_needs_no_memory() {
    let (_, capacity, handle) = allocate::<()>(5).expect("nothing is there");
    assert_eq!((capacity, handle.bytes()), (usize::MAX, 0));
    deallocate(handle);
    let (_, capacity, handle) = allocate::<u32>(0).expect("nothing is there");
    assert_eq!((capacity, handle.bytes()), (0, 0));
    deallocate(handle);
}

#[test]
fn the_largest_class_is_served() {
    let (start, capacity, handle) = allocate::<u8>(64 << 30).expect("64 GiB of address space");
    assert_eq!(capacity, 64 << 30);
    // SAFETY: the region belongs to this test and has `capacity` bytes.
    unsafe { start.as_ptr().add(capacity - 1).write(1) };
    deallocate(handle);
}
