//! The only interface between heapdrome's allocators and the operating system.
//!
//! [`Pages`] is the contract: address space, the memory behind it, and nothing else. [`Linux`]
//! implements it with system calls. `Simulated` (feature `simulated`) implements it with a table,
//! so that tests explore rare behaviour of a kernel, and Miri can run an allocator. [`Lock`] is a
//! lock that never allocates and that survives a fork. [`EventCount`] is a sleep that another
//! thread ends. [`system`] has the few other services of the process that an allocator uses: a
//! coarse clock, a random word, the environment, a last message. [`thread_key`] detects the end of
//! a thread.
//!
//! Nothing here allocates, and nothing here changes `errno`.
//!
//! The `libc` crate without its default features is `no_std`, and replaces declarations by hand.
//! Its constants and layouts are tested for every architecture.

#![no_std]

#[cfg(any(test, miri, feature = "simulated"))]
extern crate std;

/// Atomics that the allocators use: core's, or in models (allocators/models) loom's.
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
