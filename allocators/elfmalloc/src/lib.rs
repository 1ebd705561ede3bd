//! elfmalloc: a general-purpose allocator that never writes into free blocks.
//!
//! Threads keep free blocks at hand in magazines, arrays of pointers outside of the blocks
//! ([`front`](heap::front), [`magazine`](heap::magazine)). A magazine that is empty or full is
//! refilled or flushed in batches ([`refill`](heap::refill)) from and to slabs
//! ([`slab`](slabs::slab), [`bin`](slabs::bin)), whose descriptors lie out of band. Slabs are cut
//! from a pool of 64 KiB units ([`pool`](units::pool), [`arena`](units::arena)), which gives back
//! to the system what lies idle ([`tick`](heap::heaps::Heaps::tick)). Larger blocks are runs of
//! units, or mappings of their own ([`large`](heap::large)).
//!
//! What a thread keeps at hand is a [`front_end`](heap::front_end): magazines, or the smaller
//! [`local_cache`](heap::local_cache).
//!
//! `docs/elfmalloc.md` explains the design.

#![no_std]

#[cfg(test)]
extern crate std;

pub mod hardened;
pub mod heap;
pub mod misuse;
pub mod process;
pub mod settings;
pub mod size_class;
pub mod slabs;
pub mod units;

pub use hardened::Hardened;
pub use heapdrome_malloc_abi::global_allocator;
pub use process::{Allocator, Elfmalloc, ElfmallocL};
pub use size_class::SizeClass;
