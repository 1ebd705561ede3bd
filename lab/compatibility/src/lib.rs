//! Heapdrome's own allocators put to the test: the [`conformance`] suite against each of their
//! libraries, and real programs under them. Does each do what it should, and is it really the
//! allocator that serves it?
//!
//! A [`Program`] is a script that fails where the program's answer is wrong. [`Bench::run`] runs it
//! once, under the witness: a program that the allocator did not serve counts as untested, not as
//! passed. The programs of the core are run by `tests/core.rs`; all of them by the executable
//! `heapdrome-compatibility`, which prints the table of docs/compatibility.md.

mod bench;
pub mod conformance;
mod program;

pub use bench::{ALLOCATORS, Bench, Outcome};
pub use program::{Program, programs};
