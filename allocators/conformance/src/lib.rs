//! Conformance suite for allocators.
//!
//! - Generated operation programs ([`Program`]) run on many threads against a shadow heap. They
//!   check overlap, alignment, contents, zeroing, usable size, and `realloc` across boundaries of
//!   size classes. A failing program is shrunk. [`execute`] runs a program on a [`Subject`]: the
//!   process's own allocator, a library, or an implementation of `MallocAbi`.
//! - Small C and C++ programs ([`checks`]) at two levels: ordinary use of the ABI, and its rare
//!   cases. They are compiled on the machine where they run, and most run with the library
//!   preloaded.
//! - [`steps`] counts the instructions of a call in an unmodified library by single-stepping.
//!
//! [`Suite`] runs generated programs and checks against a library, each in a child process, so that
//! a broken allocator affects nothing else. The executable `heapdrome-conformance` does so from the
//! command line. `heapdrome allocators check` runs only the checks, against any allocator.

mod check;
mod checks;
mod child;
mod execute;
mod program;
mod shadow;
mod shrink;
mod source;
#[cfg(target_arch = "x86_64")]
pub mod steps;
mod subject;
mod suite;

pub use check::{Check, Level};
pub use checks::checks;
pub use execute::execute;
pub use program::{Operation, Program, Step};
pub use shrink::shrink;
pub use source::{BASIC, EXPECTED, Header, OTHER_ALLOCATOR, Source};
pub use subject::Subject;
pub use suite::{Failure, Library, Suite, execute_file};
