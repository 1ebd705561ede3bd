//! Services of the operating system for the crates of the lab: child processes, control groups,
//! memory, clocks, privileges, file locks and signals. Also contains file digests, file errors, and
//! the output conventions of companion programs.

pub mod child;
pub mod companion;
mod digest;
mod file;
pub mod forks;
pub mod group;
pub mod interrupt;
pub mod kernel;
pub mod lock;
pub mod process;
pub mod rights;
pub mod room;

pub use digest::{sha256_of_bytes, sha256_of_file};
pub use file::FileError;
