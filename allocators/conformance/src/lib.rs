//! Suite that every allocator must pass.
//!
//! - Generated operation programs ([`Program`]) run on many threads against a shadow heap. They
//!   check overlap, alignment, contents, zeroing, usable size, and `realloc` over every boundary. A
//!   program that fails is shrunk. [`execute`] runs one on a [`Subject`]: the process's own
//!   allocator, a library, or an implementation of `MallocAbi`.
//! - Small C and C++ programs ([`checks`]) at two levels: the calls on which every program relies,
//!   and the corners of the ABI. They are compiled where they run, with the library preloaded.
//! - [`steps`] counts the instructions of a call in an unmodified library, one by one.
//!
//! [`Suite`] runs the first two against a library, each in a child process, so that a broken
//! allocator breaks nothing else. The executable `heapdrome-conformance` does so from the command
//! line. `heapdrome allocators check` runs the second against any allocator.

mod check;
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

pub use check::{Check, Level, checks};
pub use execute::execute;
pub use program::{Operation, Program, Step};
pub use shrink::shrink;
pub use source::{BASIC, EXPECTED, Header, OTHER_ALLOCATOR, Source};
pub use subject::Subject;
pub use suite::{Failure, Library, Suite, execute_file};
