//! The only interface between heapdrome's allocators and the operating system.
//!
//! [`Pages`] is the contract: address space, the memory behind it, and the number of the current
//! processor. [`Linux`] implements it with system calls. `Simulated` (feature `simulated`)
//! implements it with a table, so that tests can explore rare behaviour of a kernel, and Miri can
//! run an allocator. [`Lock`] never allocates, and can be held across a fork. [`EventCount`] is a
//! sleep that another thread can end. [`system`] has services other than memory, such as a coarse
//! clock, a random word, the environment, and messages to standard error. [`thread_key`] has keys
//! of thread-local values, whose destructors detect the end of a thread.
//!
//! `Simulated` may allocate and change `errno`. No other public function of this crate changes
//! `errno`, except that [`thread_key::set`] may if it is out of memory. No other function allocates
//! unless its description says so.
//!
//! The C library's functions and types are declared by the `libc` crate (`no_std`, without its
//! default features), whose constants and layouts are tested on every architecture.

#![no_std]

#[cfg(any(test, miri, feature = "simulated"))]
extern crate std;

/// Atomics for the allocators: core's, or loom's in models (allocators/models).
#[cfg(not(modelled))]
pub use core::sync::atomic;
#[cfg(modelled)]
pub use heapdrome_modelled_atomics as atomic;

mod contract;
mod errno;
mod event_count;
mod futex;
mod linux;
mod lock;
#[cfg(any(test, feature = "simulated"))]
mod simulated;
pub mod system;
pub mod thread_key;

pub use contract::{Access, Advice, Pages, Placed, Remap};
pub use errno::KeepErrno;
pub use event_count::EventCount;
pub use futex::nap;
pub use linux::Linux;
pub use lock::{Guard, Lock};
#[cfg(any(test, feature = "simulated"))]
pub use simulated::{Calls, Simulated};

#[cfg(test)]
mod tests;
