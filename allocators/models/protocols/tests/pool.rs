//! bumpmalloc's pool: a thread that takes a chunk has exclusive access, even while others add
//! chunks and purge memory.

use std::ptr::{NonNull, without_provenance_mut};
use std::sync::Arc;

use heapdrome_models::chunk::{Chunk, FIRST, Owner, SIZE};
use heapdrome_models::pool::Pool;
use heapdrome_models::{Watched, join, model, spawn};
use heapdrome_pages::Lock;

/// Pool, a chunk from the pool, and the watched contents of the chunk's two blocks.
struct Scene {
    pool: Lock<Pool>,
    /// Bytes in all chunks.
    all: usize,
    chunk: NonNull<Chunk>,
    blocks: [Watched; 2],
}

// SAFETY: the pool has a lock, all fields of a chunk are atomics, and any thread may use the other
// fields.
unsafe impl Sync for Scene {}
// SAFETY: the pool has a lock, all fields of a chunk are atomics, and any thread may use the other
// fields.
unsafe impl Send for Scene {}

const OWNER: *mut Owner = without_provenance_mut(64);
/// Offset of the end of the chunk's blocks, some pages behind the first block, so that there is
/// memory to purge.
const END: usize = 64 << 10;

impl Scene {
    fn new() -> Arc<Self> {
        let pool = Lock::new(Pool::new());
        let chunk = pool.lock().take().expect("there is memory");
        let all = pool.lock().waiting() + SIZE;
        let scene = Self {
            pool,
            all,
            chunk,
            blocks: [Watched::default(), Watched::default()],
        };
        scene.fill(chunk);
        Arc::new(scene)
    }

    /// Fills a chunk with two blocks, like the thread that has taken it.
    fn fill(&self, chunk: NonNull<Chunk>) {
        // SAFETY: the chunk belongs to the calling thread, and has no live block.
        let header = unsafe {
            chunk.as_ref().restart(OWNER);
            chunk.as_ref()
        };
        if chunk == self.chunk {
            for block in &self.blocks {
                block.touch();
            }
        }
        header.retire(2, END);
    }

    fn header(&self) -> &Chunk {
        // SAFETY: chunks are mapped until the pool releases them, at the end.
        unsafe { self.chunk.as_ref() }
    }

    /// Frees a block like a thread that is not the owner.
    fn free_remotely(&self, block: usize) {
        self.blocks[block].touch();
        if self.header().count_remote_free() {
            self.pool.lock().keep(self.chunk);
        }
    }

    /// Ends the owner's thread.
    fn end(&self) {
        if self.header().disown() {
            self.pool.lock().keep(self.chunk);
        }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.pool.lock().release();
    }
}

#[test]
fn a_chunk_that_its_owner_left_is_used_again_by_one_thread() {
    model(2, || {
        let scene = Scene::new();
        let (freeing, taking) = (scene.clone(), scene.clone());
        let freeing = spawn(move || freeing.free_remotely(0));
        let taking = spawn(move || {
            let chunk = taking.pool.lock().take().expect("there is memory");
            taking.fill(chunk);
            taking.pool.lock().keep(chunk);
        });
        scene.free_remotely(1);
        scene.end();
        join(freeing);
        join(taking);
        assert_eq!(scene.pool.lock().waiting(), scene.all);
    });
}

#[test]
fn memory_goes_back_only_of_chunks_that_nobody_has() {
    model(2, || {
        let scene = Scene::new();
        scene.header().count_own_free();
        scene.header().count_own_free();
        scene.pool.lock().keep(scene.chunk);
        let purging = scene.clone();
        let purging = spawn(move || {
            purging.pool.lock().purge(0);
        });
        let chunk = scene.pool.lock().take().expect("there is memory");
        assert_eq!(chunk, scene.chunk, "dead chunks come first");
        // SAFETY: the place lies in the chunk, which belongs to this thread.
        let place = unsafe { chunk.cast::<u8>().add(FIRST.next_multiple_of(4096)) };
        // SAFETY: the place lies in the chunk, which belongs to this thread.
        unsafe { place.write(7) };
        scene.fill(chunk);
        // SAFETY: the place lies in the chunk, which belongs to this thread.
        assert_eq!(unsafe { place.read() }, 7, "another thread purged it");
        scene.pool.lock().keep(chunk);
        join(purging);
    });
}
