//! Replays traces: compiles a process of a trace into a program of allocation calls, and runs the
//! program with real threads under the allocator that serves this process.
//!
//! heapdrome itself uses [`compile`]. Its companion `heapdrome-replay` uses [`main`]. While a
//! program runs there, only its calls reach the allocator under test, and the C library's requests
//! of memory for threads.

mod companion;
mod compile;
mod engine;
mod options;
mod program;
mod shrink;
mod words;

pub use companion::{FAULTS, FIGURES, NAME, TABLES, main};
pub use compile::{CompileError, Compiled, check, compile, share_in_allocator};
pub use engine::{Heap, Libc, Outcome, ReplayError, header, replay};
pub use options::{Speed, Touch};
pub use program::{FORM, Header};
pub use shrink::{Script, Shrunk, shrink};
