//! What the models in `tests` need beside the allocators' own sources.

pub mod scene;

pub use heapdrome_modelled_atomics::{end_of_thread, join, keys, model, nothing_in_advance, spawn};

/// bumpmalloc's header of a chunk, as it is.
#[path = "../../bumpmalloc/src/chunk.rs"]
#[allow(missing_docs, dead_code, clippy::new_without_default)]
pub mod chunk;

/// bumpmalloc's pool of chunks that nobody owns, as it is.
#[path = "../../bumpmalloc/src/pool.rs"]
#[allow(missing_docs, dead_code, clippy::new_without_default)]
pub mod pool;

/// bumpmalloc's counts of address space, as they are.
#[path = "../../bumpmalloc/src/footprint.rs"]
#[allow(missing_docs, dead_code)]
pub mod footprint;

/// The gate that keeps threads out of an allocator while one of them forks, as it is.
#[path = "../../malloc-abi/src/fork_gate.rs"]
pub mod fork_gate;

/// The fallback that serves those threads meanwhile, as it is.
#[path = "../../malloc-abi/src/fallback.rs"]
pub mod fallback;

/// The key for the end of threads, as it is.
#[path = "../../malloc-abi/src/thread_exit.rs"]
pub mod thread_exit;

/// Memory that loom looks after: two threads that use it without an order between them are a
/// failure.
#[derive(Debug)]
pub struct Watched(loom::cell::UnsafeCell<usize>);

impl Default for Watched {
    fn default() -> Self {
        Self(loom::cell::UnsafeCell::new(0))
    }
}

// SAFETY: loom ends the model where two threads use it at once.
unsafe impl Sync for Watched {}
// SAFETY: as above.
unsafe impl Send for Watched {}

impl Watched {
    /// Writes to it, and returns how often that was done before.
    pub fn touch(&self) -> usize {
        self.0.with_mut(|count| {
            // SAFETY: nobody else uses it now, or loom ends the model.
            unsafe {
                *count += 1;
                *count - 1
            }
        })
    }
}
