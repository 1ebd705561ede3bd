//! Helpers for the models in `tests`, and the allocators' sources that the models compile.

pub mod scene;

pub use heapdrome_modelled_atomics::{end_of_thread, join, keys, model, nothing_in_advance, spawn};

/// bumpmalloc's header of a chunk, unmodified.
#[path = "../../bumpmalloc/src/chunk.rs"]
#[allow(missing_docs, dead_code, clippy::new_without_default)]
pub mod chunk;

/// bumpmalloc's pool of chunks without an owner, unmodified.
#[path = "../../bumpmalloc/src/pool.rs"]
#[allow(missing_docs, dead_code, clippy::new_without_default)]
pub mod pool;

/// bumpmalloc's counts of address space, unmodified.
#[path = "../../bumpmalloc/src/footprint.rs"]
#[allow(missing_docs, dead_code)]
pub mod footprint;

/// Gate that keeps threads out of an allocator while one of them forks, unmodified.
#[path = "../../malloc-abi/src/fork_gate.rs"]
pub mod fork_gate;

/// Fallback from which threads allocate while another thread forks, unmodified.
#[path = "../../malloc-abi/src/fallback.rs"]
pub mod fallback;

/// Key that detects the end of threads, unmodified.
#[path = "../../malloc-abi/src/thread_exit.rs"]
pub mod thread_exit;

/// Memory whose accesses loom checks: if two threads use it without an order between them, the
/// model fails.
#[derive(Debug)]
pub struct Watched(loom::cell::UnsafeCell<usize>);

impl Default for Watched {
    fn default() -> Self {
        Self(loom::cell::UnsafeCell::new(0))
    }
}

// SAFETY: the model fails if two threads use the memory at the same time.
unsafe impl Sync for Watched {}
// SAFETY: the model fails if two threads use the memory at the same time.
unsafe impl Send for Watched {}

impl Watched {
    /// Writes to the memory. Returns the number of earlier writes.
    pub fn touch(&self) -> usize {
        self.0.with_mut(|count| {
            // SAFETY: the model fails if another thread uses the memory at the same time.
            unsafe {
                *count += 1;
                *count - 1
            }
        })
    }
}
