//! bumpmalloc's counters of frees: exactly one thread takes a dead chunk, and no other thread uses
//! the chunk then.

use heapdrome_models::chunk::{Chunk, FIRST, Owner};
use heapdrome_models::{Watched, join, model, spawn};
use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

/// Retired chunk, and the watched contents of its blocks.
struct Scene {
    chunk: *mut Chunk,
    blocks: [Watched; 3],
    taken: AtomicUsize,
}

// SAFETY: `chunk` points to a chunk that lives as long as the scene and whose fields are all
// atomics. `blocks` and `taken` are `Send` and `Sync` themselves.
unsafe impl Sync for Scene {}
// SAFETY: `chunk` points to a chunk that lives as long as the scene and whose fields are all
// atomics. `blocks` and `taken` are `Send` and `Sync` themselves.
unsafe impl Send for Scene {}

const LAYOUT: std::alloc::Layout = std::alloc::Layout::new::<Chunk>();

impl Scene {
    /// Creates a retired chunk with `blocks` blocks.
    fn new(blocks: usize) -> Arc<Self> {
        // SAFETY: zero is a valid header, and the layout is not empty.
        let chunk: *mut Chunk = unsafe { std::alloc::alloc_zeroed(LAYOUT).cast() };
        let scene = Self {
            chunk,
            blocks: std::array::from_fn(|_| Watched::default()),
            taken: AtomicUsize::new(0),
        };
        scene.chunk().owner.store(OWNER, Relaxed);
        scene.chunk().retire(blocks, FIRST);
        Arc::new(scene)
    }

    fn chunk(&self) -> &Chunk {
        // SAFETY: the chunk lives as long as the scene.
        unsafe { &*self.chunk }
    }

    /// Frees a block like a thread that is not the owner.
    fn free_remotely(&self, block: usize) {
        self.blocks[block].touch();
        if self.chunk().count_remote_free() {
            self.take();
        }
    }

    /// Takes the dead chunk for this thread, which may then use all blocks.
    fn take(&self) {
        assert_eq!(self.taken.fetch_add(1, Relaxed), 0, "taken twice");
        for block in &self.blocks {
            block.touch();
        }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        // SAFETY: the chunk was allocated in `new` with this layout, and no other reference to it
        // exists.
        unsafe { std::alloc::dealloc(self.chunk.cast(), LAYOUT) };
    }
}

const OWNER: *mut Owner = std::ptr::without_provenance_mut(64);

#[test]
fn a_chunk_that_its_owner_leaves_is_taken_once_by_whoever_frees_last() {
    model(3, || {
        let scene = Scene::new(2);
        let handles = [0, 1].map(|block| {
            let scene = scene.clone();
            spawn(move || scene.free_remotely(block))
        });
        if scene.chunk().disown() {
            scene.take();
        }
        for handle in handles {
            join(handle);
        }
        assert_eq!(scene.taken.load(Relaxed), 1);
    });
}

#[test]
fn an_owner_that_finds_a_chunk_dead_is_alone_with_it() {
    model(3, || {
        let scene = Scene::new(3);
        let handles = [0, 1].map(|block| {
            let scene = scene.clone();
            spawn(move || scene.free_remotely(block))
        });
        scene.blocks[2].touch();
        scene.chunk().count_own_free();
        if scene.chunk().is_retired_dead() {
            scene.take();
        }
        for handle in handles {
            join(handle);
        }
        if scene.taken.load(Relaxed) == 0 {
            assert!(scene.chunk().is_retired_dead());
            scene.take();
        }
    });
}

#[test]
fn another_thread_that_looks_for_dead_chunks_is_alone_with_what_it_finds() {
    model(3, || {
        let scene = Scene::new(2);
        let remote = scene.clone();
        let remote = spawn(move || remote.free_remotely(0));
        let looking = scene.clone();
        let looking = spawn(move || {
            if looking.chunk().is_retired_dead() {
                looking.take();
            }
        });
        scene.blocks[1].touch();
        scene.chunk().count_own_free();
        join(remote);
        join(looking);
    });
}

#[test]
fn an_owner_that_ends_after_all_frees_takes_the_chunk_itself() {
    model(3, || {
        let scene = Scene::new(2);
        let other = scene.clone();
        let handle = spawn(move || other.free_remotely(0));
        scene.blocks[1].touch();
        scene.chunk().count_own_free();
        if scene.chunk().disown() {
            scene.take();
        }
        join(handle);
        assert_eq!(scene.taken.load(Relaxed), 1);
    });
}
