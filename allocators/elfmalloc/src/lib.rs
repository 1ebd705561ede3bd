//! elfmalloc: a general-purpose memory allocator, for Rust programs and behind C's `malloc`.
//!
//! One line makes it the global allocator of a Rust program:
//!
//! ```
//! heapdrome_elfmalloc::global_allocator!(heapdrome_elfmalloc::Elfmalloc);
//!
//! fn main() {
//!     let squares: Vec<u64> = (0..1000).map(|number| number * number).collect();
//!     assert_eq!(squares[30], 900);
//! }
//! ```
//!
//! [`Elfmalloc`] is the default. [`ElfmallocL`] has smaller per-thread caches, which take less
//! memory and more time. [`Hardened`] detects double frees, invalid frees, and many overflows and
//! uses after free. It then ends the process with a message. For C and C++ programs, the package
//! `heapdrome-preload-elfmalloc` builds a library to preload or to link. `docs/elfmalloc.md`
//! describes both uses, and the settings, which are environment variables.
//!
//! # How it works
//!
//! elfmalloc keeps no data in free blocks. Threads keep free blocks in magazines: arrays of
//! pointers that lie outside the blocks ([`front`](heap::front), [`magazine`](heap::magazine)). An
//! empty magazine is refilled in batches from the thread's depot or from slabs
//! ([`refill`](heap::refill)), and a full one is flushed to them ([`flush`](heap::flush)). The
//! descriptors of slabs lie out of band ([`slab`](slabs::slab), [`bin`](slabs::bin)). A pool of 64
//! KiB units supplies the memory of slabs ([`pool`](units::pool), [`arena`](units::arena)). Idle
//! memory is returned to the system ([`tick`](heap::heaps::Heaps::tick)). Larger blocks are runs of
//! units, or have their own mappings ([`large`](heap::large)).
//!
//! The per-thread cache is a [`front_end`](heap::front_end): magazines, or the smaller
//! [`local_cache`](heap::local_cache).
//!
//! `docs/elfmalloc-design.md` explains the design.

#![no_std]

#[cfg(test)]
extern crate std;

pub mod hardened;
pub mod heap;
pub(crate) mod line;
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
