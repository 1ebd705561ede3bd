//! What the models in `tests` need beside the allocators' own sources.

pub use heapdrome_modelled_atomics::{join, model, spawn};

/// bumpmalloc's header of a chunk, as it is.
#[path = "../../bumpmalloc/src/chunk.rs"]
#[allow(missing_docs, dead_code, clippy::new_without_default)]
pub mod chunk;

/// What that refers to.
pub mod heap {
    /// A thread's heap, of which a chunk knows the address only.
    #[derive(Debug)]
    pub struct Heap;
}

/// Memory that loom looks after: two threads that use it without an order between them are a failure.
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
