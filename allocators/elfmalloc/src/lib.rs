//! elfmalloc: a general-purpose allocator that never writes into free blocks.
//!
//! Threads keep free blocks at hand in magazines, arrays of pointers outside of the blocks
//! ([`heap`], [`magazine`]). A magazine that is empty or full is refilled or flushed in batches
//! ([`slow`]) from and to slabs ([`slab`], [`bin`]), whose descriptors lie out of band. Slabs are cut
//! from a pool of 64 KiB units ([`pool`], [`arena`]), which gives back to the system what lies idle
//! ([`reclaim`]). Larger blocks are runs of units, or mappings of their own ([`large`]).
//!
//! What a thread keeps at hand is a [`front_end`]: magazines, or the smaller [`local_cache`].
//!
//! `docs/elfmalloc.md` explains the design.

#![no_std]

#[cfg(test)]
extern crate std;

pub mod arena;
pub mod backend;
mod background;
pub mod bin;
mod canary;
pub mod check;
mod checks;
mod claims;
pub mod class_map;
pub mod coalescer;
mod current;
pub mod depot;
pub mod directory;
pub mod drain;
pub mod elfmalloc;
mod empties;
pub mod exit_report;
mod fill;
pub mod fork;
pub mod front_end;
mod guarded;
pub mod hardened;
mod hardened_free;
pub mod heap;
pub mod heaps;
mod huge;
pub mod large;
pub mod local_cache;
pub mod look;
pub mod magazine;
pub mod mapped;
pub mod metadata;
pub mod misuse;
pub mod pool;
pub mod processors;
pub mod quarantine;
pub mod reclaim;
mod retire;
mod runs;
pub mod settings;
mod shape;
pub mod size_class;
pub mod slab;
pub mod slow;
pub mod spill;
mod states;
pub mod statistics;
mod structures;
pub mod threads;
pub mod unit_map;

pub use elfmalloc::{Allocator, Elfmalloc, ElfmallocL};
pub use hardened::Hardened;
pub use heapdrome_malloc_abi::global_allocator;
pub use size_class::SizeClass;
