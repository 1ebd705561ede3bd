//! Tests of reading and writing traces through the crate's public functions.

mod format;
mod python;
mod speed;
mod stacks;
mod support;
mod tools;
