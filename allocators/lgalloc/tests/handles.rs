//! Tests of handles, vectors and readers: statistics, purges and prefetches. Each test runs in its
//! own process.

mod support;

use heapdrome_lgalloc::{LargeVec, Pattern, RangeError, Reader, UNIT, allocate, deallocate, stats};
use heapdrome_pages::{Linux, Pages};
use support::{alone, touch};

/// Returns the number of allocated regions of each class, according to the statistics.
fn counted() -> Vec<isize> {
    let classes = stats().classes;
    let live = classes
        .iter()
        .map(|class| class.allocations as isize - class.deallocations as isize);
    live.collect()
}

#[test]
fn a_region_that_changes_its_class_is_counted_where_it_is() {
    if !alone("a_region_that_changes_its_class_is_counted_where_it_is") {
        return;
    }
    let only = |class: usize| -> Vec<isize> {
        let counts = (0..stats().classes.len()).map(|at| isize::from(at == class));
        counts.collect()
    };
    let moved = || stats().moved_bytes + stats().copied_bytes;
    let mut handle = allocate::<u8>(1).expect("memory").2;
    touch(handle.start().as_ptr(), UNIT);
    for class in [0, 2, 5, 5, 1, 0] {
        handle.resize::<u8>(UNIT << class).expect("memory");
        assert_eq!(counted(), only(class), "at class {class}");
    }
    assert_eq!(moved(), 0, "it has grown where it is");
    // The freed part still has contents, so the region cannot grow in place and must move. The
    // statistics must then count it in its new class only.
    handle.resize::<u8>(UNIT << 4).expect("memory");
    assert_ne!(moved(), 0);
    assert_eq!(counted(), only(4));
    deallocate(handle);
    assert!(counted().iter().all(|live| *live == 0), "{:?}", counted());
}

#[test]
fn what_a_region_does_not_need_can_be_dropped() {
    if !alone("what_a_region_does_not_need_can_be_dropped") {
        return;
    }
    let (start, capacity, mut handle) = allocate::<u8>(UNIT).expect("memory");
    let fill = || {
        // SAFETY: the handle owns its region, which has `capacity` bytes.
        unsafe { start.as_ptr().write_bytes(7, capacity) };
    };
    // SAFETY: the handle owns its region, and the byte lies in it and was written or purged.
    let byte = |at: usize| unsafe { start.as_ptr().add(at).read() };
    fill();
    let page = Linux.page_size();
    assert_eq!(handle.purge::<u8>(1..3 * page - 1), Ok(()));
    let found = [0, page - 1, page, 2 * page - 1, 2 * page, 3 * page - 2].map(byte);
    assert_eq!(
        found,
        [7, 7, 0, 0, 7, 7],
        "whole pages within, and no others"
    );
    fill();
    let before = stats().purged_bytes;
    assert_eq!(handle.purge::<u8>(1..page - 1), Ok(()));
    assert_eq!(handle.purge::<u64>(7..7), Ok(()));
    assert_eq!(stats().purged_bytes, before, "no whole page");
    assert_eq!(handle.purge::<u64>(page..capacity / 8), Ok(()));
    assert_eq!(
        (byte(8 * page - 1), byte(8 * page), byte(capacity - 1)),
        (7, 0, 0)
    );
    assert_eq!(stats().purged_bytes - before, capacity - 8 * page);
    let outside = Err(RangeError::OutOfBounds { length: capacity });
    assert_eq!(handle.purge::<u8>(0..capacity + 1), outside);
    assert_eq!(handle.purge::<u64>(0..usize::MAX), outside);
    deallocate(handle);
}

#[test]
fn a_vector_returns_what_it_does_not_fill() {
    if !alone("a_vector_returns_what_it_does_not_fill") {
        return;
    }
    let bytes = 4 * UNIT;
    let mut vec = LargeVec::with_capacity(bytes / 3).expect("memory");
    vec.resize(vec.capacity(), [7_u8, 8, 9]).expect("memory");
    vec.truncate(1000);
    assert_eq!(vec.purge_spare(), Ok(()));
    assert_eq!(
        stats().purged_bytes,
        bytes - 3000_usize.next_multiple_of(Linux.page_size())
    );
    assert!(vec.iter().all(|element| *element == [7, 8, 9]));
    assert_eq!(vec.capacity(), bytes / 3);
}

/// One page is unmapped. The prefetch of this page fails, which shows when the reader requested it.
#[test]
fn readers_ask_for_a_batch_beyond_what_they_read() {
    if !alone("readers_ask_for_a_batch_beyond_what_they_read") {
        return;
    }
    let page = Linux.page_size();
    let mut vec = LargeVec::with_capacity(UNIT).expect("memory");
    vec.resize(UNIT, 1_u8).expect("memory");
    // SAFETY: the page belongs to the vector, and is not accessed after it is unmapped.
    let gone = unsafe { libc::munmap(vec.as_mut_ptr().add(3 * page).cast(), page) };
    assert_eq!(gone, 0);
    let read_when_refused = |pattern, batch| {
        let mut reader = Reader::new(&vec, pattern, batch).expect("inside");
        let mut counts = 1..3 * page;
        let refused = |_: &usize| reader.next().is_none() || reader.refusal().is_some();
        let read = counts.find(refused);
        assert_eq!(reader.refusal(), Some(RangeError::Refused(libc::ENOMEM)));
        read.expect("it was refused")
    };
    // The last index lies on the unmapped page.
    let indices = [0, 1, 2, 4, 5, 6, 3].map(|at| at * page);
    for (batch, read) in [(1, 6), (2, 5), (3, 4), (32, 1)] {
        assert_eq!(read_when_refused(Pattern::Indices(&indices), batch), read);
    }
    let strided = Pattern::Strided {
        first: 5,
        stride: page,
        count: 5,
    };
    assert_eq!(read_when_refused(strided, 1), 3);
    let all = 0..UNIT;
    assert_eq!(
        read_when_refused(Pattern::Sequential(&all), page),
        2 * page + 1
    );
    // The region has a hole, so it must not be reused.
    std::mem::forget(vec);
}
