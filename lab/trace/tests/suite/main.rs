//! Traces as other crates read and write them.

mod format;
mod python;
mod speed;
mod support;
mod tools;
