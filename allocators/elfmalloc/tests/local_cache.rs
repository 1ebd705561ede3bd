//! The coalescer of the thread-local cache, over simulated pages: frees while it gives blocks back,
//! and its size.

mod paths;

use std::cell::Cell;
use std::ptr::NonNull;

use heapdrome_elfmalloc::SizeClass;
use heapdrome_elfmalloc::heap::heaps::Heaps;
use heapdrome_elfmalloc::heap::local_cache::LocalCache;
use heapdrome_elfmalloc::heap::thread_heap::HeapRef;
use heapdrome_elfmalloc::heap::threads::detach;
use heapdrome_elfmalloc::settings::Settings;
use heapdrome_pages::{Access, Advice, Pages, Remap, Simulated};
use paths::{allocate, put};

/// Size of the blocks. The coalescer gathers two of them, and a slab has 32.
const SIZE: usize = 2048;
const BLOCKS: usize = 64;

fn class() -> SizeClass {
    SizeClass::of(SIZE)
}

/// System that frees the block in `NEXT`, if any, whenever the allocator queries the current
/// processor, which happens while other blocks go back. A signal handler may free a block at such a
/// moment.
struct Interrupted(Simulated);

thread_local! {
    /// Heap and block for the next free by [`Interrupted`].
    static NEXT: Cell<Option<(HeapRef, *mut u8)>> = const { Cell::new(None) };
}

static HEAPS: Heaps<Interrupted> = Heaps::new(Interrupted(Simulated::new(64 << 20)));

// SAFETY: all calls go to the simulated system, which keeps the contract.
unsafe impl Pages for Interrupted {
    fn page_size(&self) -> usize {
        self.0.page_size()
    }

    fn reserve(&self, size: usize, alignment: usize, access: Access) -> Option<NonNull<u8>> {
        self.0.reserve(size, alignment, access)
    }

    unsafe fn protect(&self, start: NonNull<u8>, size: usize, access: Access) -> bool {
        // SAFETY: this method's contract is that of the simulated system's method.
        unsafe { self.0.protect(start, size, access) }
    }

    unsafe fn purge(&self, start: NonNull<u8>, size: usize) -> bool {
        // SAFETY: this method's contract is that of the simulated system's method.
        unsafe { self.0.purge(start, size) }
    }

    unsafe fn advise(&self, start: NonNull<u8>, size: usize, advice: Advice) -> bool {
        // SAFETY: this method's contract is that of the simulated system's method.
        unsafe { self.0.advise(start, size, advice) }
    }

    unsafe fn remap(
        &self,
        start: NonNull<u8>,
        size: usize,
        new_size: usize,
        how: Remap,
    ) -> Option<NonNull<u8>> {
        // SAFETY: this method's contract is that of the simulated system's method.
        unsafe { self.0.remap(start, size, new_size, how) }
    }

    unsafe fn release(&self, start: NonNull<u8>, size: usize) -> bool {
        // SAFETY: this method's contract is that of the simulated system's method.
        unsafe { self.0.release(start, size) }
    }

    fn processor(&self) -> Option<usize> {
        if let Some((heap, block)) = NEXT.take() {
            put::<LocalCache>(&HEAPS, heap, class(), block);
        }
        None
    }
}

#[test]
fn a_block_may_be_freed_while_others_go_back() {
    HEAPS.start(|| Settings {
        arena: 0,
        shards: 1,
        ..Settings::DEFAULT
    });
    // While two threads share one shard, every choice of a bin queries the current processor.
    let [heap, other] = [(); 2].map(|()| HEAPS.attach().expect("there is memory"));
    let mut blocks = Vec::new();
    blocks.resize_with(BLOCKS, || allocate::<LocalCache>(&HEAPS, heap, class()));
    let own = |block: &*mut u8| heap.front.owns(class(), block.addr());
    let (own, gathered): (Vec<_>, Vec<_>) = blocks.into_iter().partition(own);
    let free = |block| put::<LocalCache>(&HEAPS, heap, class(), block);
    let mut interruptions = 0;
    let threes = gathered.chunks_exact(3);
    threes.remainder().iter().for_each(|block| free(*block));
    for three in threes {
        free(three[0]);
        NEXT.set(Some((heap, three[1])));
        free(three[2]);
        match NEXT.take() {
            Some((_, block)) => free(block),
            None => interruptions += 1,
        }
    }
    assert!(
        interruptions != 0,
        "no block was freed while others went back"
    );
    own.into_iter().for_each(free);
    // SAFETY: the heaps belong to this thread, which no longer uses them.
    unsafe {
        detach(&HEAPS, heap);
        detach(&HEAPS, other);
    }
    HEAPS.release_kept();
    assert_eq!(HEAPS.shards.slabs(), 0, "all blocks were freed");
    HEAPS.check();
}

#[test]
fn what_is_gathered_takes_two_kibibytes() {
    let heaps = Heaps::new(Simulated::new(64 << 20));
    heaps.start(|| Settings {
        arena: 0,
        ..Settings::DEFAULT
    });
    let heap = heaps.attach().expect("there is memory");
    let mut blocks = Vec::new();
    blocks.resize_with(BLOCKS, || allocate::<LocalCache>(&heaps, heap, class()));
    let used = || heaps.memory().structures.lock().used;
    let before = used();
    put::<LocalCache>(&heaps, heap, class(), blocks[0]);
    assert_eq!(used() - before, 2048);
}
