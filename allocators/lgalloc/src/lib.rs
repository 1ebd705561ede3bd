//! Memory for objects of 2 MiB and more, recycled while it is warm.
//!
//! [`allocate`] returns a pointer, a capacity and a [`Handle`]; [`deallocate`] takes the handle
//! back. [`LargeVec`] does the same without any `unsafe`, and a [`Reader`] prefetches the elements
//! that it will read. Region sizes are 2 MiB times a power of two, up to 64 GiB.
//!
//! A freed region stays in a cache of its thread, last in first out, within one budget over all
//! classes. From there it goes to a pool that all threads share. Regions that exceed the cap on
//! dirty memory lose their contents and join their neighbours, so that they serve any class again.
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
//! No step of an allocation uses the heap, except the start of the background thread.

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
