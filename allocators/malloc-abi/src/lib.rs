//! Turns an allocator into a library that exports the whole C and C++ allocation ABI.
//!
//! An allocator implements [`MallocAbi`]. A `cdylib` crate calls [`export!`] with its type, and
//! [`panic_handler!`] if it is built without the standard library. The result can be preloaded,
//! linked, or loaded by `dlopen`. [`global_allocator!`] makes the same type the global allocator of
//! a Rust program.
//!
//! The whole source of a preloadable library for the allocator `Elfmalloc`:
//!
//! ```ignore
//! #![cfg_attr(panic = "abort", no_std)]
//!
//! heapdrome_malloc_abi::export!(heapdrome_elfmalloc::Elfmalloc);
//! heapdrome_malloc_abi::panic_handler!();
//! ```
//!
//! The calls are static: `malloc` is the allocator's own [`MallocAbi::allocate_fast`], inlined,
//! with one jump to the slow path. This crate handles all details of the ABI (`errno`, overflow,
//! new-handlers, exceptions, forks) on slow paths. While a thread forks, no other thread waits:
//! [`fork_gate`] keeps the others off the allocator's slow paths, and they allocate from the
//! [`fallback`].
//!
//! Two further tools are for allocators with per-thread state: [`thread_slot!`], a thread-local
//! pointer that never allocates and costs two instructions on x86-64, and [`ThreadExit`], which
//! detects the end of a thread.

#![no_std]

#[cfg(any(test, miri))]
extern crate std;

mod contract;
mod entry;
mod export;
pub mod fallback;
mod fork;
pub mod fork_gate;
mod global;
mod information;
mod operator_new;
mod report;
mod slow_path;
mod thread_exit;
mod thread_slot;

pub use contract::{MAX_SIZE, MIN_ALIGNMENT, MallocAbi, Statistics};
pub use fork_gate::{ForkGate, Presence};
pub use report::{Form, Report, Table, write_report};
pub use slow_path::{deallocate, end_thread, enter, trim};
pub use thread_exit::ThreadExit;

#[doc(hidden)]
pub mod exported {
    //! Items that the macros use; not meant to be used directly.

    pub use crate::entry::*;
    pub use crate::fork::{start, stop};
    pub use crate::global::Global;
    pub use crate::information::*;
    pub use crate::operator_new::{align_or_null, align_or_throw, new_or_null, new_or_throw};
    pub use heapdrome_pages::system::abort;
    pub use libc;
}
