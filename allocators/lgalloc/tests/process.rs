//! Tests of the whole process: resident memory, reuse, growth, prefetches, and threads that end.
//! Each test runs in its own process: this program starts itself again.

#[path = "support/memory.rs"]
mod memory;
mod support;

use std::time::Duration;

use heapdrome_lgalloc::{
    Config, RangeError, UNIT, allocate, configure, deallocate, empty_everything, stats,
};
use memory::{burst, resident};
use support::{alone, touch};

#[test]
fn after_a_burst_dirty_memory_is_below_its_cap() {
    if !alone("after_a_burst_dirty_memory_is_below_its_cap") {
        return;
    }
    let before = resident();
    configure(&Config {
        dirty_cap: 24 << 20,
        thread_budget: 8 << 20,
        ..Config::default()
    });
    let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(|| burst(64))).collect();
    burst(64);
    for thread in threads {
        thread.join().expect("no thread fails");
    }
    let (after, dirty) = (resident().saturating_sub(before), stats().dirty_bytes);
    assert!(dirty <= 24 << 20, "{dirty} bytes dirty");
    assert!(after <= (24 << 20) + (16 << 20), "{after} bytes resident");
    // The bursts may reuse the same memory, so only the excess of one burst was certainly purged.
    let purged = stats().purged_bytes;
    assert!(purged >= (64 - 24) << 20, "{purged} bytes purged");
    empty_everything();
    let left = resident().saturating_sub(before);
    assert!(
        left <= 16 << 20,
        "{left} bytes resident after everything was returned"
    );
}

#[test]
fn memory_moves_between_classes() {
    if !alone("memory_moves_between_classes") {
        return;
    }
    burst(512);
    empty_everything();
    let large = allocate::<u8>(512 << 20).expect("memory");
    assert_eq!(
        stats().reserved_bytes,
        1 << 30,
        "small regions did not join to a large one"
    );
    deallocate(large.2);
}

/// The most recently freed region is the most likely to be in memory, in a thread's cache and in
/// the pool.
#[test]
fn what_was_freed_last_is_handed_out_first() {
    if !alone("what_was_freed_last_is_handed_out_first") {
        return;
    }
    configure(&Config {
        stale_after: Duration::from_secs(3600),
        ..Config::default()
    });
    let take = || allocate::<u8>(UNIT).expect("memory");
    let regions: Vec<_> = (0..100).map(|_| take()).collect();
    let freed: Vec<_> = regions.iter().map(|(start, ..)| *start).collect();
    regions
        .into_iter()
        .for_each(|(_, _, handle)| deallocate(handle));
    let again: Vec<_> = freed.iter().map(|_| take()).collect();
    let taken = again.iter().map(|(start, ..)| *start);
    assert!(taken.eq(freed.into_iter().rev()));
    again
        .into_iter()
        .for_each(|(_, _, handle)| deallocate(handle));
}

struct Late(Option<heapdrome_lgalloc::Handle>);

impl Drop for Late {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(deallocate);
        let (start, _, handle) = allocate::<u8>(1).expect("memory past the end of a thread");
        touch(start.as_ptr(), 4096);
        deallocate(handle);
    }
}

#[test]
fn threads_past_their_end_are_served() {
    if !alone("threads_past_their_end_are_served") {
        return;
    }
    thread_local! {
        static LATE: std::cell::RefCell<Late> = const { std::cell::RefCell::new(Late(None)) };
    }
    // Try a thread-local that is set before the allocator's own, and one that is set afterwards.
    // Destructors may run in either order.
    for early in [true, false] {
        let thread = std::thread::spawn(move || {
            if early {
                LATE.with_borrow_mut(|_| ());
            }
            let handle = allocate::<u8>(1).expect("memory").2;
            LATE.with_borrow_mut(|late| late.0 = Some(handle));
        });
        thread.join().expect("no thread fails");
    }
    assert!(stats().classes[0].clean_regions + stats().classes[0].dirty_regions > 0);
}

#[test]
fn prefetching_reports_what_the_system_says() {
    if !alone("prefetching_reports_what_the_system_says") {
        return;
    }
    let (_, capacity, handle) = allocate::<u8>(1).expect("memory");
    assert_eq!(handle.prefetch_hint::<u8>(1..2), Ok(()));
    assert_eq!(handle.prefetch_hint::<u8>(4095..4097), Ok(()));
    assert_eq!(handle.prefetch_hint::<u8>(capacity - 1..capacity), Ok(()));
    assert_eq!(handle.prefetch_hint::<u64>(3..3), Ok(()));
    let outside = Err(RangeError::OutOfBounds { length: capacity });
    assert_eq!(handle.prefetch_hint::<u8>(0..capacity + 1), outside);
    assert_eq!(handle.prefetch_hint::<u64>(0..usize::MAX), outside);
    #[expect(clippy::reversed_empty_ranges, reason = "that is the case under test")]
    let reversed = handle.prefetch_hint::<u8>(5..4);
    assert_eq!(reversed, outside);
    // SAFETY: the region belongs to this test, and is not accessed after it is unmapped.
    let gone = unsafe { libc::munmap(handle.start().as_ptr().cast(), capacity) };
    assert_eq!(gone, 0);
    assert_eq!(
        handle.prefetch_hint::<u8>(5..10),
        Err(RangeError::Refused(libc::ENOMEM))
    );
}

/// Only swapped contents are dropped. Pages that were never written must not cause the others to be
/// dropped.
#[test]
fn a_region_that_is_in_memory_is_kept_however_long_it_was_free() {
    if !alone("a_region_that_is_in_memory_is_kept_however_long_it_was_free") {
        return;
    }
    configure(&Config {
        stale_after: Duration::from_millis(1),
        huge_pages: false,
        ..Config::default()
    });
    for touched in [UNIT, UNIT / 2] {
        empty_everything();
        let (start, _, handle) = allocate::<u8>(UNIT).expect("memory");
        touch(start.as_ptr(), touched);
        let before = stats();
        deallocate(handle);
        std::thread::sleep(Duration::from_millis(60));
        let again = allocate::<u8>(UNIT).expect("memory").2;
        assert_eq!(again.start(), start);
        let after = stats();
        assert_eq!(after.purged_bytes, before.purged_bytes);
        assert_eq!(after.stale_bytes, 0);
        deallocate(again);
    }
}

/// Every region that cannot grow in place moves, and keeps its contents.
#[test]
fn growth_keeps_contents_and_copies_nothing_that_can_be_moved() {
    if !alone("growth_keeps_contents_and_copies_nothing_that_can_be_moved") {
        return;
    }
    let mut handles: Vec<_> = (0..4)
        .map(|_| allocate::<u8>(UNIT).expect("memory").2)
        .collect();
    for (number, handle) in handles.iter().enumerate() {
        // SAFETY: the handle owns its region, which has at least `UNIT` bytes.
        unsafe { handle.start().write_bytes(number as u8 + 1, UNIT) };
    }
    for bytes in [2 * UNIT, 4 * UNIT, 8 * UNIT] {
        for (number, handle) in handles.iter_mut().enumerate() {
            let (start, capacity) = handle.resize::<u8>(bytes).expect("memory");
            assert_eq!(capacity, bytes);
            // SAFETY: the handle owns its region, and the first unit was written.
            let kept = unsafe { std::slice::from_raw_parts(start.as_ptr(), UNIT) };
            assert!(kept.iter().all(|byte| *byte == number as u8 + 1));
            // SAFETY: the last page lies in the handle's region.
            unsafe { start.add(bytes - 4096).write_bytes(9, 4096) };
        }
    }
    let stats = stats();
    assert!(
        stats.moved_bytes + stats.copied_bytes >= 4 * UNIT,
        "four regions side by side cannot all grow in place: {stats:?}"
    );
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("procfs");
    let mut numbers = kernel.split(['.', '-']).map(|part| part.parse::<u32>());
    let version = (numbers.next(), numbers.next());
    if matches!(version, (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= (5, 7)) {
        assert_eq!(stats.copied_bytes, 0, "this kernel moves pages");
    }
    handles.into_iter().for_each(deallocate);
}
