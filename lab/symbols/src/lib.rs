//! Names the functions and lines of the frames of recorded stacks.
//!
//! [`Symbols::find`] reads the files of code that a trace names, and the files with their debug
//! information. It executes nothing and uses no network. It rejects a file whose build id differs
//! from the one in the trace. If a module's file is missing, damaged or of another build, and its
//! debug information is not installed, its frames have no names, and a [`Note`] says why.

#![forbid(unsafe_code)]

mod code;
mod file;
mod places;
mod symbols;
mod table;

pub use places::{Note, Place, Trouble};
pub use symbols::Symbols;

/// Folder in which distributions install files with debug information.
pub const DEBUG_FOLDER: &str = "/usr/lib/debug";
