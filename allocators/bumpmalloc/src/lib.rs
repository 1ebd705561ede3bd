//! bumpmalloc: an arena, for programs that allocate much memory and free all of it.
//!
//! Allocating moves a cursor through a chunk of 1 MiB. A chunk is reused only when every block in
//! it has been freed, so one long-lived block keeps a whole chunk. The arena therefore suits batch
//! jobs, compilers and request handlers, but not caches or servers with long sessions.
//! `docs/bumpmalloc.md` describes suitable programs. bumpmalloc detects no misuse.
//!
//! One line makes it the global allocator of a Rust program:
//!
//! ```
//! heapdrome_bumpmalloc::global_allocator!(heapdrome_bumpmalloc::Bumpmalloc);
//!
//! fn main() {
//!     let words: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
//!     assert_eq!(words[42], "42");
//! }
//! ```
//!
//! For C and C++ programs, the package `heapdrome-preload-bumpmalloc` builds a library to preload
//! or to link.
//!
//! # Modules
//!
//! - `heap`: a thread's heap, and the fast path, which moves a cursor and marks the end of the
//!   block.
//! - `chunk`: a mebibyte with its header and marks, and the counts of frees, which cost the owner
//!   no atomic read-modify-write.
//! - `refill`: the slow path, which chooses the next chunk.
//! - `pool`: dead chunks, and address space for new chunks. `footprint`: counts of address space.
//! - `threads`: heaps of threads that start and end, and forks.
//! - `resize`: `realloc`.
//! - `large`: blocks with their own mapping.
//! - `allocator`: the interface, and a thread's first allocation and its end.

#![no_std]

#[cfg(test)]
extern crate std;

mod allocator;
mod chunk;
mod footprint;
mod heap;
mod large;
mod pool;
mod refill;
mod resize;
mod threads;

pub use allocator::Bumpmalloc;
pub use heapdrome_malloc_abi::global_allocator;
