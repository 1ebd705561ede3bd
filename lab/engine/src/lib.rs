//! Races, sweeps, suites, experiments of the paging lab and comparisons: from a plan to a result. Knows no command line.

pub mod allocators;
pub mod compare;
mod engine;
pub mod event;
pub mod failure;
pub mod folders;
pub mod interrupt;
pub mod kept;
pub mod nearest;
pub mod paging;
pub mod placement;
pub mod program;
pub mod race;
pub mod slowdown;
pub mod suite;
pub mod workload;

pub use engine::Engine;
