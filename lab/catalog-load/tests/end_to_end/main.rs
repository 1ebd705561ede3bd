//! Tests the workload's binary, from its command line to its output and files.

mod command;
mod common;
mod interruptions;
