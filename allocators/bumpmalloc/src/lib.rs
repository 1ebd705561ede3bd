//! Arena behind the C and C++ allocation ABI, for programs that allocate much and free all of it.
//!
//! It is for special purposes: a chunk is reused only when every block in it has been freed, so one
//! long-lived block keeps a mebibyte. docs/bumpmalloc.md says for which programs it is meant, and
//! for which it is not.
//!
//! - `heap`: a thread's heap and the fast path: move a cursor, mark where the block ends.
//! - `chunk`: a mebibyte with its header and the marks; who counts what, so that the owner's free
//!   needs no atomic read-modify-write.
//! - `refill`: the slow path: which chunk comes next.
//! - `pool`: chunks without an owner, and address space; `footprint` counts it.
//! - `threads`: heaps of threads that come and go; forks.
//! - `resize`: `realloc`.
//! - `large`: blocks with their own mapping.
//! - `allocator`: the interface, and a thread's first and last call.

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
