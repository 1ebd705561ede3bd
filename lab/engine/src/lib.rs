//! Races, sweeps, suites and comparisons: from a plan to a result. Knows no command line.

pub mod allocators;
pub mod compare;
mod engine;
pub mod event;
pub mod failure;
pub mod folders;
pub mod interrupt;
pub mod nearest;
pub mod placement;
pub mod program;
pub mod race;
pub mod slowdown;
pub mod suite;
pub mod workload;

pub use engine::Engine;
