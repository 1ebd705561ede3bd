//! The atomics of what threads share without a lock. The model test compiles the same files against
//! loom's instead (`tests/model`).

pub use core::sync::atomic::{AtomicBool, AtomicUsize, fence};
pub use heapdrome_pages::Lock;
