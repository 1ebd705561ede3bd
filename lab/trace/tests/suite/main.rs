//! Traces as other crates read and write them.

mod format;
mod python;
mod speed;
mod stacks;
mod support;
mod tools;
