//! lgalloc: an allocator for objects of 2 MiB and more, which reuses memory while it is still
//! resident.
//!
//! [`LargeVec`] is a safe vector in such memory, and a [`Reader`] prefetches the elements that it
//! will read:
//!
//! ```
//! use heapdrome_lgalloc::{LargeVec, Pattern, Reader};
//!
//! let mut numbers = LargeVec::with_capacity(1 << 20)?;
//! numbers.extend(0..1_000_000_u64)?;
//! let rows: Vec<usize> = (0..1000).map(|row| row * 997).collect();
//! let sum: u64 = Reader::new(&numbers, Pattern::Indices(&rows), 32)?.sum();
//! assert_eq!(sum, 997 * 999 * 500);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The lower layer is untyped: [`allocate`] returns a pointer, a capacity and a [`Handle`], and
//! [`deallocate`] takes the handle back. Region sizes are 2 MiB times a power of two, up to 64 GiB.
//! [`configure`] changes the limits of the process, and [`stats`] reports its memory. [`c_api`] and
//! [`c_settings`] are the interface for C.
//!
//! A freed region goes to the cache of the thread that frees it: one stack for each class, with one
//! budget over all classes. If the cache has no room, regions go to a pool that all threads share.
//! Regions that exceed the cap on dirty memory lose their contents and merge with free neighbours,
//! so that any class can use the address space again.
//!
//! Allocation does not use the program's heap, except to start the background thread and to
//! register a thread's destructor or the fork handlers.

mod buddy;
pub mod c_api;
pub mod c_settings;
mod cap;
mod class;
mod config;
mod configure;
mod dirty;
mod error;
mod fork;
mod handle;
mod os;
mod pool;
mod purge;
mod reader;
mod region;
mod registry;
mod relocate;
mod shared;
mod slot;
mod stats;
mod sync;
mod thread;
mod thread_slot;
mod vec;
mod vec_iter;
mod worker;

pub use class::{CLASSES, SizeClass, UNIT};
pub use config::Config;
pub use configure::configure;
pub use error::{AllocError, RangeError};
pub use handle::{Handle, allocate, deallocate};
pub use pool::empty_everything;
pub use reader::{Pattern, Reader};
pub use stats::{ClassStats, Stats, stats};
pub use vec::LargeVec;
pub use vec_iter::IntoIter;
