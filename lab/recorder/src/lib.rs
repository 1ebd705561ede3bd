//! Records the allocations of a command, and of the processes that it starts, into a trace.
//!
//! The witness's preloaded library, in its recording mode, writes each recorded call into a ring of
//! the calling thread ([`heapdrome_witness::ring`]). The collector here has two threads. The
//! drainer copies the rings into memory, so that threads rarely wait for a free entry. The worker
//! brings the copies into one order for each process, turns addresses into numbers of blocks, and
//! writes the trace.

mod addresses;
mod backlog;
mod clock;
mod delivery;
mod drainer;
mod entries;
mod error;
mod forks;
mod image;
mod known;
mod mappings;
mod message;
mod module;
mod pace;
mod process;
mod recording;
mod rings;
mod shared;
mod snapshots;
mod stacks;
mod streams;
mod timing;
mod unwind;
mod worker;

pub use error::RecorderError;
pub use recording::{Request, Summary, record};
