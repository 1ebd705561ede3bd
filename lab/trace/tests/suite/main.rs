//! Tests that read and write traces through the crate's public functions.

mod format;
mod python;
mod speed;
mod stacks;
mod support;
mod tools;
