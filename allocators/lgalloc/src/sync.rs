//! Atomics for state that threads share without a lock, and a fence in two halves. The model test
//! (`tests/model.rs`) compiles `cap`, `dirty`, `region`, `shared` and `slot` against loom's
//! versions instead.

use core::sync::atomic::{Ordering::SeqCst, compiler_fence};

pub use core::sync::atomic::{AtomicBool, AtomicUsize, fence};
pub use heapdrome_pages::Lock;

pub use crate::os::{can_fence_every_thread as can_fence, fence_every_thread as heavy_fence};

/// Executes the cheap half of a fence: together with [`heavy_fence`] in another thread, it orders
/// the accesses of both threads as `fence(SeqCst)` in both would.
///
/// This half only keeps the compiler from reordering accesses. The other half makes every processor
/// that runs a thread of this process execute a full fence, at some point between that thread's
/// instructions.
#[inline]
pub fn light_fence() {
    compiler_fence(SeqCst);
}
