//! When out of address space or memory, the library returns an error, and the program can continue.
//! Each test runs in its own process.

mod support;

use std::hint::black_box;
use std::sync::{Arc, Barrier};

use heapdrome_lgalloc::{
    AllocError, Config, Handle, LargeVec, UNIT, allocate, configure, deallocate,
};
use support::{alone, touch};

fn limit(resource: libc::__rlimit_resource_t, bytes: u64) {
    let limit = libc::rlimit {
        rlim_cur: bytes,
        rlim_max: bytes,
    };
    // SAFETY: the limit is a local variable, which the call only reads.
    let result = unsafe { libc::setrlimit(resource, &raw const limit) };
    assert_eq!(result, 0);
}

/// Allocates regions of 4 MiB until out of memory, and frees them. Returns their number. The caller
/// provides the room for the handles, because the process has no other memory.
fn exhaust(regions: &mut Vec<Handle>) -> usize {
    let refused = loop {
        match allocate::<u8>(4 << 20) {
            Ok((start, _, handle)) => {
                touch(start.as_ptr(), 4096);
                assert!(regions.len() < regions.capacity());
                regions.push(handle);
            }
            Err(error) => break error,
        }
    };
    assert_eq!(refused, AllocError::OutOfMemory { bytes: 4 << 20 });
    let count = regions.len();
    regions.drain(..).for_each(deallocate);
    count
}

fn what_is_refused_is_tried_smaller(resource: libc::__rlimit_resource_t) {
    configure(&Config {
        huge_pages: false,
        ..Config::default()
    });
    let room = || Vec::with_capacity(1000);
    let mut regions = room();
    // Other threads must still be able to allocate after a refusal. They start to allocate when
    // this thread has freed all regions.
    let barrier = Arc::new(Barrier::new(4));
    let threads = [(); 3].map(|()| {
        let (barrier, mut regions) = (Arc::clone(&barrier), room());
        std::thread::spawn(move || {
            // A thread's first use of the heap reserves address space. Do this before the limit is
            // set, so that it does not affect the count below.
            drop(black_box(Box::new(0_u8)));
            barrier.wait();
            barrier.wait();
            (0..3).map(|_| exhaust(&mut regions)).sum::<usize>()
        })
    });
    barrier.wait();
    limit(resource, 900 << 20);
    let refused = allocate::<u8>(64 << 30).err();
    assert_eq!(refused, Some(AllocError::OutOfMemory { bytes: 64 << 30 }));
    let count = exhaust(&mut regions);
    assert!(count * 4 > 256, "only {count} regions of 4 MiB in 900 MiB");
    // Memory that is free in one class can be used by another class, although the limit leaves no
    // room for more.
    for _ in 0..count {
        let region = allocate::<u8>(UNIT);
        regions.push(
            region
                .expect("free memory of one class is lost to another")
                .2,
        );
    }
    regions.drain(..).for_each(deallocate);
    barrier.wait();
    let counts = threads.map(|thread| thread.join().expect("no thread fails"));
    assert!(counts.iter().sum::<usize>() >= count, "{counts:?}");
    let again = exhaust(&mut regions);
    assert!(again >= count, "{again} of {count}: regions were lost");
}

#[test]
fn address_space_that_is_exhausted_is_an_error_and_no_more() {
    if alone("address_space_that_is_exhausted_is_an_error_and_no_more") {
        what_is_refused_is_tried_smaller(libc::RLIMIT_AS);
    }
}

/// Uses the limit on writable memory, which `ulimit -d` sets.
#[test]
fn memory_that_is_exhausted_is_an_error_and_no_more() {
    if alone("memory_that_is_exhausted_is_an_error_and_no_more") {
        what_is_refused_is_tried_smaller(libc::RLIMIT_DATA);
    }
}

#[test]
fn a_vector_that_cannot_grow_keeps_what_it_has() {
    if !alone("a_vector_that_cannot_grow_keeps_what_it_has") {
        return;
    }
    limit(libc::RLIMIT_AS, 700 << 20);
    let mut pages = LargeVec::with_capacity(0).expect("nothing");
    let refused = loop {
        let next = pages.len() as u64;
        if let Err(error) = pages.extend((next..next + 64).map(|number| [number; 512])) {
            break error;
        }
    };
    assert!(matches!(refused, AllocError::OutOfMemory { .. }));
    assert!(pages.len() * 4096 >= 64 << 20, "{} pages", pages.len());
    let mut numbered = pages.iter().enumerate();
    assert!(numbered.all(|(number, page)| page[511] == number as u64));
}
