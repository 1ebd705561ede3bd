//! Buddies over a simulated system.

use std::vec::Vec;

use heapdrome_pages::Simulated;

use super::*;

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

/// Every block that is handed out is disjoint from all others, and in the end everything joins.
#[test]
fn random_blocks_never_overlap_and_join_again() {
    let mut state = 88_172_645_463_325_252_u64;
    let mut draw = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % bound as u64) as usize
    };
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
