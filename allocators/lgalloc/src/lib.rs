//! Memory for objects of 2 MiB and more, recycled while it is warm.
//!
//! [`allocate`] gives a pointer, a capacity and a [`Handle`]; [`deallocate`] takes the handle back.
//! [`LargeVec`] is the same without any `unsafe`, and a [`Reader`] prefetches what it will read.
//! Regions are powers of two of 2 MiB, up to 64 GiB.
//!
//! A region that is freed stays with its thread, last in first out, within one budget over all
//! classes; then with a pool that all threads share; what exceeds the cap on dirty memory loses its
//! contents and joins its neighbours, so that it serves any class again.
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
//! Nothing on the way of an allocation uses the heap, except to start the background thread.

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
