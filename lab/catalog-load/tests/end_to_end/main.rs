//! The workload's binary, from its command line to what it prints and leaves behind.

mod command;
mod common;
mod interruptions;
