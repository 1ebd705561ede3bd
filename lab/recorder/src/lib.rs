//! Records the allocations of a command and of all processes that it starts into a trace.
//!
//! The witness's preloaded library, in its recording mode, writes every call into a ring of the
//! calling thread ([`heapdrome_witness::ring`]). The collector here drains the rings into one order
//! for each process, turns addresses into numbers of blocks, and writes the trace.

mod addresses;
mod clock;
mod collector;
mod error;
mod image;
mod mappings;
mod module;
mod process;
mod recording;
mod rings;
mod shared;
mod snapshots;
mod stacks;
mod unwind;

pub use error::RecorderError;
pub use recording::{Request, Summary, record};
