//! The only door from heapdrome's allocators to the operating system.
//!
//! [`Pages`] is the contract: address space, the memory behind it, and nothing else. [`Linux`]
//! keeps it with system calls; `Simulated` (feature `simulated`) keeps it with a table, so that
//! tests explore what a kernel rarely does, and Miri can run an allocator. [`Lock`] is a lock that
//! never allocates and that survives a fork, [`EventCount`] a sleep that another thread ends;
//! [`system`] holds the few other things that an allocator asks of its process: a coarse clock, a
//! word of randomness, the environment, a last message; [`thread_key`] holds the way to learn that
//! a thread ends.
//!
//! Nothing here allocates, and nothing here changes `errno`.
//!
//! The `libc` crate without its default features is `no_std` and declares what we would declare by
//! hand; its constants and layouts are tested for every architecture, ours would not be.

#![no_std]

#[cfg(any(test, miri, feature = "simulated"))]
extern crate std;

/// The atomics that the allocators use: core's, or in models (allocators/models) loom's.
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
