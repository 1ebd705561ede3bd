//! Reads and writes traces as other crates do.

mod format;
mod python;
mod speed;
mod stacks;
mod support;
mod tools;
