//! Replays traces: compiles a process of a trace into a program of allocation calls, and runs that
//! with real threads under whatever allocator serves this process.
//!
//! [`compile`] belongs to heapdrome, [`main`] to its companion `heapdrome-replay`, in which nothing
//! but the allocator under test allocates while a program runs.

mod companion;
mod compile;
mod engine;
mod options;
mod program;
mod shrink;
mod words;

pub use companion::{FAULTS, FIGURES, NAME, TABLES, main};
pub use compile::{CompileError, Compiled, check, compile};
pub use engine::{Heap, Libc, Outcome, ReplayError, header, replay};
pub use options::{Speed, Touch};
pub use program::{FORM, Header};
pub use shrink::{Script, Shrunk, shrink};
