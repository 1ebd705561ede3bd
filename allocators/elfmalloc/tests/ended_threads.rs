//! Heaps of ended threads, over simulated pages: small magazines keep their blocks for the next
//! thread, for an epoch or two.

mod paths;

use heapdrome_elfmalloc::SizeClass;
use heapdrome_elfmalloc::heap::front_end::Magazines;
use heapdrome_elfmalloc::heap::heaps::Heaps;
use heapdrome_elfmalloc::heap::thread_heap::HeapRef;
use heapdrome_elfmalloc::heap::threads::detach;
use heapdrome_elfmalloc::settings::Settings;
use heapdrome_pages::Simulated;
use paths::{allocate, put};

/// Maximum number of shards, and thus of heaps that keep blocks.
const SHARDS: usize = 2;

fn class() -> SizeClass {
    SizeClass::of(64)
}

fn backend(decay: u64) -> Heaps<Simulated> {
    let backend = Heaps::new(Simulated::new(1 << 30));
    backend.start(|| Settings {
        arena: 0,
        decay,
        shards: SHARDS,
        ..Settings::DEFAULT
    });
    backend
}

/// Allocates and then frees `count` blocks, so that the heap's magazine has blocks.
fn use_blocks(backend: &Heaps<Simulated>, heap: HeapRef, count: usize) {
    let blocks: Vec<_> = (0..count)
        .map(|_| allocate::<Magazines>(backend, heap, class()))
        .collect();
    for block in blocks {
        put::<Magazines>(backend, heap, class(), block);
    }
}

fn end(backend: &Heaps<Simulated>, heap: HeapRef) {
    // SAFETY: the heap belongs to this thread, which only reads it from now on, and there is no
    // other thread.
    unsafe { detach(backend, heap) };
}

#[test]
fn the_next_thread_takes_over_the_blocks() {
    let backend = backend(u64::MAX);
    let heap = backend.attach().expect("there is memory");
    use_blocks(&backend, heap, 10);
    end(&backend, heap);
    let kept = heap.magazine(class()).length();
    assert_ne!(kept, 0);
    let next = backend.attach().expect("there is memory");
    assert_eq!((next, next.magazine(class()).length()), (heap, kept));
    use_blocks(&backend, next, 10);
    backend.check();
    end(&backend, next);
}

#[test]
fn without_a_next_thread_they_go_back_after_two_epochs() {
    let backend = backend(0);
    let heap = backend.attach().expect("there is memory");
    use_blocks(&backend, heap, 10);
    end(&backend, heap);
    // The first call may begin the first epoch.
    (0..3).for_each(|_| backend.tick());
    backend.check();
    assert_eq!(backend.shards.slabs(), 0);
}

#[test]
fn only_as_many_heaps_keep_blocks_as_threads_can_run_in_parallel() {
    let backend = backend(u64::MAX);
    let heaps: Vec<_> = (0..3 * SHARDS)
        .map(|_| backend.attach().expect("there is memory"))
        .collect();
    for &heap in &heaps {
        use_blocks(&backend, heap, 10);
    }
    for &heap in &heaps {
        end(&backend, heap);
    }
    let kept = heaps
        .iter()
        .filter(|heap| heap.magazine(class()).length() != 0);
    assert_eq!(kept.count(), SHARDS);
    backend.release_kept();
    backend.check();
    assert_eq!(backend.shards.slabs(), 0);
}

#[test]
fn a_large_magazine_is_emptied() {
    let backend = backend(u64::MAX);
    let heap = backend.attach().expect("there is memory");
    for number in 1..SizeClass::LARGE.number() {
        let class = SizeClass::from_number(number as u8);
        for _ in 0..20 {
            let blocks: Vec<_> = (0..64)
                .map(|_| allocate::<Magazines>(&backend, heap, class))
                .collect();
            for block in blocks {
                put::<Magazines>(&backend, heap, class, block);
            }
        }
    }
    end(&backend, heap);
    assert!(heap.magazines().all(|(_, magazine)| magazine.length() == 0));
}

#[test]
fn the_child_of_a_fork_keeps_the_blocks_of_ended_threads() {
    let backend = backend(u64::MAX);
    let ended = backend.attach().expect("there is memory");
    let other = backend.attach().expect("there is memory");
    use_blocks(&backend, ended, 10);
    use_blocks(&backend, other, 10);
    end(&backend, ended);
    // SAFETY: this thread is the only one, and `other` stands for a thread of the parent.
    unsafe { backend.disown(None) };
    assert_eq!(
        other.magazine(class()).length(),
        0,
        "those of running threads are lost"
    );
    assert_ne!(ended.magazine(class()).length(), 0);
    assert_eq!(backend.attach(), Some(ended));
    assert_eq!(backend.attach(), Some(other));
}
