//! Depots: the owner moves blocks in and out, other threads empty the depot, and the owner ends.

use std::collections::BTreeSet;
use std::ptr::NonNull;
use std::sync::Arc;

use heapdrome_elfmalloc::heap::front_end::{FrontEnd, Magazines};
use heapdrome_elfmalloc::heap::heaps::Heaps;
use heapdrome_elfmalloc::heap::refill::refill;
use heapdrome_elfmalloc::heap::thread_heap::HeapRef;
use heapdrome_elfmalloc::heap::threads::detach;
use heapdrome_elfmalloc::slabs::free_blocks::FreeBlock;
use heapdrome_models::scene::{Sent, Shared, backend, give, many, take};
use heapdrome_models::{Watched, join, model, spawn};
use heapdrome_pages::Simulated;

/// Number of blocks that the owner's thread has at first: a multiple of the blocks of a refill, so
/// that its magazine is empty.
const HELD: usize = 28;
/// Number of freed blocks: a full magazine and one more, so that half of the magazine goes to the
/// depot.
const FREED: usize = 15;
/// Number of blocks that a refill takes from the depot.
const BATCH: usize = 7;

/// Heap whose thread has blocks of one slab, with the contents of those blocks.
struct Scene {
    backend: Shared,
    heap: Sent<HeapRef>,
    lowest: usize,
    contents: Vec<Watched>,
}

// SAFETY: threads share the back-end, and only the heap's owner uses the heap, apart from its
// attachment, which any thread may read.
unsafe impl Sync for Scene {}

impl Scene {
    fn new() -> (Arc<Self>, Vec<*mut u8>) {
        let backend = backend();
        let heap = backend.attach().expect("there is memory");
        // Keeps the thread from checking the clock.
        heap.front.set_ticks(i32::MAX);
        let mut scene = Self {
            backend,
            heap: Sent(heap),
            lowest: 0,
            contents: (0..HELD + 3 * BATCH).map(|_| Watched::default()).collect(),
        };
        let mut held: Vec<_> = (0..HELD).map(|_| scene.allocate()).collect();
        scene.lowest = held.iter().map(|block| block.addr()).min().unwrap_or(0);
        scene.fill_depot(&mut held);
        // Take the blocks of the magazine. The blocks in the depot stay there.
        held.extend((BATCH..FREED).map(|_| scene.allocate()));
        (Arc::new(scene), held)
    }

    /// Frees blocks like the owner, until half a magazine is in the depot.
    fn fill_depot(&self, held: &mut Vec<*mut u8>) {
        held.drain(..FREED).for_each(|block| self.free(block));
    }

    /// Allocates a block like the owner.
    fn allocate(&self) -> *mut u8 {
        let heap = self.heap.get();
        let block = heap.front.allocate(many().size());
        if block.is_null() {
            return refill(&self.backend, heap, many());
        }
        block
    }

    /// Writes to a block and frees it into the magazines of this scene's heap, as the heap's owner
    /// does.
    fn free(&self, block: *mut u8) {
        self.touch(block);
        let block = NonNull::new(block).expect("a block");
        // SAFETY: callers pass an allocated block of this class, which the model no longer uses.
        let block = unsafe { FreeBlock::new(many(), block) };
        Magazines::put(&*self.backend, self.heap.get(), block);
    }

    /// Writes to the content of a block, as a program does.
    fn touch(&self, block: *mut u8) {
        self.contents[(block.addr() - self.lowest) / many().size()].touch();
    }

    /// Ends the owner's thread.
    fn end(&self) {
        // SAFETY: the heap belongs to the calling thread, which no longer uses it.
        unsafe { detach(&self.backend, self.heap.get()) };
    }

    /// Frees the last blocks, and asserts that no slab is left.
    fn finish(&self, blocks: impl IntoIterator<Item = *mut u8>) {
        for block in blocks {
            give(&self.backend, many(), block);
        }
        // An ended thread keeps small magazines for the next one.
        self.backend.release_kept();
        self.backend.check();
        assert_eq!(self.backend.shards.slabs(), 0, "every block has come back");
    }
}

/// The owner fills its depot and refills from it, while another thread empties the depot and takes
/// blocks from the slab. No block may be handed out twice.
fn owner_and_other(empty: fn(&Heaps<Simulated>)) {
    model(2, move || {
        let (scene, mut held) = Scene::new();
        let other = scene.clone();
        let handle = spawn(move || {
            empty(&other.backend);
            let blocks = take(&other.backend, other.heap.get(), many(), BATCH);
            blocks.iter().for_each(|&block| other.touch(block));
            Sent(blocks)
        });
        scene.fill_depot(&mut held);
        for _ in 0..FREED {
            let block = scene.allocate();
            scene.touch(block);
            held.push(block);
        }
        held.extend(join(handle).get());
        let different: BTreeSet<_> = held.iter().collect();
        assert_eq!(different.len(), held.len(), "no block is handed out twice");
        scene.end();
        scene.finish(held);
    });
}

#[test]
fn an_owner_uses_its_depot_while_another_empties_it() {
    owner_and_other(Heaps::empty_depots);
}

#[test]
fn an_owner_uses_its_depot_while_another_takes_what_is_idle() {
    owner_and_other(|backend| {
        backend.empty_idle_depots();
        backend.empty_idle_depots();
    });
}

#[test]
fn a_thread_ends_and_another_begins_while_the_depot_is_emptied() {
    model(1, || {
        let (scene, mut held) = Scene::new();
        let other = scene.clone();
        let handle = spawn(move || other.backend.empty_depots());
        scene.end();
        assert_eq!(scene.backend.attach(), Some(scene.heap.get()));
        held.extend((0..BATCH).map(|_| scene.allocate()));
        scene.fill_depot(&mut held);
        scene.end();
        join(handle);
        scene.finish(held);
    });
}
