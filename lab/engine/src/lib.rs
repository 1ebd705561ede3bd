//! Engine of heapdrome. It turns a request for a race, a sweep, a suite, a check of a trace, a
//! search for limits or a comparison into a result.
//!
//! The engine emits [`event`]s and prints nothing. It does not depend on a command line or a
//! terminal.

pub mod allocators;
pub mod check;
pub mod compare;
mod engine;
pub mod event;
pub mod failure;
pub mod fidelity;
pub mod folders;
pub mod interrupt;
pub mod kept;
pub mod paging;
pub mod placement;
pub mod program;
pub mod race;
pub mod suite;
pub mod survive;
pub mod workload;

pub use engine::Engine;
