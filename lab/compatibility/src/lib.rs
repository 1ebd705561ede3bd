//! Compatibility tests of heapdrome's own allocators: the [`conformance`] suite on each of their
//! libraries, and real programs under those of elfmalloc. A test with a program checks that the
//! program works, and that the allocator serves it.
//!
//! A [`Program`] is a script that fails if the program's answer is wrong. [`Bench::run`] runs it
//! once, under the witness. A program that the allocator did not serve counts as untested, not as
//! passed. `tests/core.rs` runs the programs of the core. The executable `heapdrome-compatibility`
//! runs all of them, and prints the tables of docs/compatibility.md.

mod bench;
pub mod conformance;
mod program;

pub use bench::{ALLOCATORS, Bench, Outcome};
pub use program::{Program, programs};
