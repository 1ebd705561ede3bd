//! Tests of `LargeVec` and `Reader`, the safe layer over regions.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use heapdrome_lgalloc::{LargeVec, Pattern, RangeError, Reader};

struct Counted<'a>(&'a AtomicUsize, bool);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
        assert!(!self.1, "a drop that panics, as the test wants");
    }
}

#[test]
fn it_is_as_vec_is() {
    let mut large = LargeVec::with_capacity(0).expect("nothing");
    let mut model = Vec::new();
    for number in 0..600_000_u64 {
        large.push(number * 3).expect("memory");
        model.push(number * 3);
        if number % 5 == 0 {
            assert_eq!(large.pop(), model.pop());
        }
    }
    large.extend(0..1000).expect("memory");
    model.extend(0..1000);
    large.extend_from_slice(&[7; 300_000]).expect("memory");
    model.extend_from_slice(&[7; 300_000]);
    assert_eq!(&large[..], &model[..]);
    large[5] = 1;
    assert_eq!(large.iter().filter(|number| **number == 1).count(), 2);
    large.truncate(100);
    large.shrink_to_fit().expect("in place");
    assert_eq!(large.capacity(), 1 << 18);
    assert_eq!(&large[6..], &model[6..100]);
}

#[test]
fn every_element_is_dropped_once() {
    let drops = AtomicUsize::new(0);
    let mut vec = LargeVec::with_capacity(10).expect("memory");
    vec.extend((0..500_000).map(|_| Counted(&drops, false)))
        .expect("memory");
    vec.truncate(400_000);
    assert_eq!(drops.load(SeqCst), 100_000);
    drop(vec.pop());
    std::thread::scope(|scope| {
        scope.spawn(move || drop(vec));
    });
    assert_eq!(drops.load(SeqCst), 500_000);
}

#[test]
fn a_drop_that_panics_leaks_nothing_and_drops_nothing_twice() {
    let drops = AtomicUsize::new(0);
    let mut vec = LargeVec::with_capacity(4).expect("memory");
    vec.extend((0..4).map(|number| Counted(&drops, number == 1)))
        .expect("memory");
    assert!(catch_unwind(AssertUnwindSafe(|| vec.clear())).is_err());
    assert_eq!((drops.load(SeqCst), vec.len()), (4, 0));
    vec.extend((0..4).map(|number| Counted(&drops, number == 1)))
        .expect("memory");
    assert!(catch_unwind(AssertUnwindSafe(move || drop(vec))).is_err());
    assert_eq!(drops.load(SeqCst), 8);
}

#[test]
fn elements_without_size() {
    let mut vec = LargeVec::with_capacity(3).expect("nothing");
    vec.extend(std::iter::repeat_n((), 1000)).expect("nothing");
    assert_eq!(
        (vec.len(), vec.capacity(), vec.pop()),
        (1000, usize::MAX, Some(()))
    );
    assert_eq!(vec.prefetch_hint(0..999), Ok(()));
}

#[test]
fn readers_follow_their_pattern() {
    let mut vec = LargeVec::with_capacity(1 << 20).expect("memory");
    vec.extend(0..1_u32 << 20).expect("memory");
    let indices: Vec<usize> = (0..5000).map(|step| step * 7919 % (1 << 20)).collect();
    for batch in [0, 1, 32, usize::MAX] {
        let reader = Reader::new(&vec, Pattern::Indices(&indices), batch).expect("inside");
        assert!(
            reader
                .map(|number| *number as usize)
                .eq(indices.iter().copied())
        );
    }
    let range = 1000..3000;
    let mut reader = Reader::new(&vec, Pattern::Sequential(&range), 128).expect("inside");
    assert!(reader.by_ref().copied().eq(1000..3000));
    assert_eq!(reader.refusal(), None);
    let strided = Pattern::Strided {
        first: 3,
        stride: 1024,
        count: 1024,
    };
    assert_eq!(
        Reader::new(&vec, strided, 32).expect("inside").count(),
        1024
    );
    let beyond = Pattern::Strided {
        first: 3,
        stride: usize::MAX,
        count: 3,
    };
    let refused = Reader::new(&vec, beyond, 32).err();
    assert_eq!(refused, Some(RangeError::OutOfBounds { length: 4 << 20 }));
    assert!(Reader::new(&vec, Pattern::Indices(&[1 << 20]), 32).is_err());
}
