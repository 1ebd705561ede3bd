//! Arena behind the C and C++ allocation ABI, for programs that allocate much memory and free all
//! of it.
//!
//! It is for special purposes: a chunk is reused only when every block in it has been freed, so one
//! long-lived block keeps a mebibyte. docs/bumpmalloc.md describes the programs for which it is
//! suitable.
//!
//! - `heap`: a thread's heap and the fast path: move a cursor, mark where the block ends.
//! - `chunk`: a mebibyte with its header and marks, and the counts of frees, which cost the owner
//!   no atomic read-modify-write.
//! - `refill`: the slow path, which chooses the next chunk.
//! - `pool`: chunks without an owner, and address space for new chunks. `footprint`: counts of
//!   address space.
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
