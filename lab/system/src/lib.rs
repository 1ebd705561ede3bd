//! What every room of the lab asks of the operating system: child processes that end, the control
//! groups of this process, the memory that is available to it, what it may do, locks on files,
//! Ctrl-C, and how a companion ends.

pub mod child;
pub mod companion;
mod digest;
mod file;
pub mod group;
pub mod interrupt;
pub mod kernel;
pub mod lock;
pub mod process;
pub mod rights;
pub mod room;

pub use digest::{sha256_of_bytes, sha256_of_file};
pub use file::FileError;
