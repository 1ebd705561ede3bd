//! Tests of size classes, and of the buddy allocator over a simulated system and over one with a
//! limit.

use std::vec::Vec;

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use heapdrome_pages::{Linux, Remap, Simulated};

use super::*;

#[path = "../tests/support/draw.rs"]
mod draw;

fn class(index: usize) -> SizeClass {
    SizeClass::of_index(index).expect("a class")
}

#[test]
fn classes_hold_what_they_are_asked_for() {
    for index in 0..CLASSES {
        let bytes = class(index).bytes();
        assert_eq!(SizeClass::of_bytes(bytes), Some(class(index)));
        assert_eq!(SizeClass::of_bytes(bytes / 2 + 1), Some(class(index)));
        assert_eq!(
            SizeClass::of_bytes(bytes + 1)
                .map(SizeClass::index)
                .unwrap_or(CLASSES),
            index + 1
        );
    }
    assert_eq!(SizeClass::of_bytes(usize::MAX), None);
}

#[test]
fn what_the_system_refuses_is_tried_at_half() {
    let mut buddy = Buddy::new(Simulated::new(5 * UNIT));
    assert!(buddy.grow(class(0)));
    assert_eq!(buddy.reserved(), (1, 4 * UNIT));
    assert!(!buddy.grow(class(2)), "there is no room for 8 MiB more");
    assert_eq!(buddy.take(class(3)), None);
    let all: Vec<_> = (0..4)
        .map(|_| buddy.take(class(0)).expect("a block"))
        .collect();
    assert_eq!(buddy.take(class(0)), None);
    for start in all {
        buddy.put(start, class(0));
    }
    assert!(buddy.take(class(2)).is_some(), "the units did not join");
}

#[test]
fn a_block_grows_into_free_neighbours_only() {
    let mut buddy = Buddy::new(Simulated::new(9 * UNIT));
    assert!(buddy.grow(class(3)));
    let first = buddy.take(class(0)).expect("a block");
    assert!(buddy.extend(first, class(0), class(2)));
    let next = buddy.take(class(2)).expect("a block");
    assert_eq!(next, first + 4 * UNIT);
    assert!(
        !buddy.extend(first, class(2), class(3)),
        "the neighbour is in use"
    );
    assert!(
        !buddy.extend(next, class(2), class(3)),
        "a right-hand block begins no larger one"
    );
    buddy.put(next, class(2));
    assert!(!buddy.extend(first, class(2), class(4)), "the area ends");
    assert!(buddy.extend(first, class(2), class(3)));
    assert_eq!(buddy.take(class(0)), None);
}

/// Live blocks never overlap, and in the end all free blocks merge.
#[test]
fn random_blocks_never_overlap_and_join_again() {
    let mut draw = draw::Draw(88_172_645_463_325_252);
    let mut draw = |bound: usize| draw.below(bound);
    let mut buddy = Buddy::new(Simulated::new(65 * UNIT));
    let mut live: Vec<(usize, SizeClass)> = Vec::new();
    assert!(buddy.grow(class(6)));
    for _ in 0..20_000 {
        if draw(2) == 0 {
            let wanted = class(draw(5));
            if let Some(start) = buddy.take(wanted) {
                for (other, size) in &live {
                    assert!(start + wanted.bytes() <= *other || other + size.bytes() <= start);
                }
                live.push((start, wanted));
            }
        } else if !live.is_empty() {
            let (start, size) = live.swap_remove(draw(live.len()));
            buddy.put(start, size);
        }
        let used: usize = live.iter().map(|block| block.1.bytes()).sum();
        let free: usize = (0..CLASSES)
            .map(class)
            .map(|at| buddy.free_blocks(at) * at.bytes())
            .sum();
        assert_eq!(used + free, 64 * UNIT);
    }
    for (start, size) in live {
        buddy.put(start, size);
    }
    assert_eq!(buddy.free_blocks(class(6)), 1);
}

#[test]
fn areas_that_are_free_leave_but_for_one_of_ordinary_size() {
    let mut buddy = Buddy::new(Simulated::new(25 * UNIT));
    assert!(buddy.grow(class(3)) && buddy.grow(class(3)));
    let blocks = [(); 3].map(|()| buddy.take(class(3)).expect("a block"));
    assert_eq!(buddy.take(class(0)), None);
    blocks
        .into_iter()
        .for_each(|start| buddy.put(start, class(3)));
    assert_eq!(buddy.reserved().0, 1);
}

/// System that counts every reserved byte against a limit, as Linux counts writable bytes with
/// `vm.overcommit_memory=2`, even with `MAP_NORESERVE`.
struct Strict {
    committed: AtomicUsize,
    refused: AtomicUsize,
    limit: usize,
}

// SAFETY: every method forwards to `Linux`, whose implementation keeps the contract of `Pages`.
unsafe impl Pages for Strict {
    fn page_size(&self) -> usize {
        Linux.page_size()
    }

    fn reserve(&self, size: usize, alignment: usize, access: Access) -> Option<NonNull<u8>> {
        let fits = |committed: usize| committed.checked_add(size).filter(|sum| *sum <= self.limit);
        if self.committed.fetch_update(Relaxed, Relaxed, fits).is_err() {
            self.refused.fetch_add(1, Relaxed);
            return None;
        }
        Linux.reserve(size, alignment, access)
    }

    unsafe fn protect(&self, start: NonNull<u8>, size: usize, access: Access) -> bool {
        // SAFETY: the caller keeps this method's contract, and `Linux` requires nothing else.
        unsafe { Linux.protect(start, size, access) }
    }

    unsafe fn purge(&self, start: NonNull<u8>, size: usize) -> bool {
        // SAFETY: the caller keeps this method's contract, and `Linux` requires nothing else.
        unsafe { Linux.purge(start, size) }
    }

    unsafe fn advise(&self, start: NonNull<u8>, size: usize, advice: Advice) -> bool {
        // SAFETY: the caller keeps this method's contract, and `Linux` requires nothing else.
        unsafe { Linux.advise(start, size, advice) }
    }

    unsafe fn remap(
        &self,
        start: NonNull<u8>,
        size: usize,
        new_size: usize,
        how: Remap,
    ) -> Option<NonNull<u8>> {
        // SAFETY: the caller keeps this method's contract, and `Linux` requires nothing else.
        unsafe { Linux.remap(start, size, new_size, how) }
    }

    unsafe fn release(&self, start: NonNull<u8>, size: usize) -> bool {
        self.committed.fetch_sub(size, Relaxed);
        // SAFETY: the caller keeps this method's contract, and `Linux` requires nothing else.
        unsafe { Linux.release(start, size) }
    }
}

#[test]
fn under_strict_overcommit_the_largest_class_is_refused_and_a_smaller_area_taken() {
    let mut buddy = Buddy::new(Strict {
        committed: AtomicUsize::new(0),
        refused: AtomicUsize::new(0),
        limit: 3 << 30,
    });
    let largest = class(CLASSES - 1);
    assert_eq!(largest.bytes(), 64 << 30);
    assert!(!buddy.grow(largest), "64 GiB exceed the limit");
    assert_eq!(
        buddy.pages.committed.load(Relaxed),
        0,
        "a refusal leaves nothing behind"
    );
    // Pretend that 256 GiB are reserved: the next area is a quarter of that, and is halved until
    // the system agrees.
    buddy.reserved = 256 << 30;
    let refused_before = buddy.pages.refused.load(Relaxed);
    assert!(buddy.grow(class(0)));
    assert_eq!(buddy.reserved().1, (256 << 30) + (2 << 30));
    let refused = buddy.pages.refused.load(Relaxed) - refused_before;
    assert_eq!(refused, 5, "64, 32, 16, 8 and 4 GiB");
    let blocks: Vec<_> = std::iter::from_fn(|| buddy.take(class(8))).collect();
    assert_eq!(blocks.len(), 4, "2 GiB in blocks of 512 MiB");
    assert!(!buddy.grow(class(9)), "less than 1 GiB is left");
    assert!(buddy.grow(class(8)), "512 MiB are");
}
