//! Tests the witness on small programs that are compiled for each test.

mod bench;
mod blocks;
mod counts;
mod end;
mod forks;
mod requests;
mod tree;
mod uncounted;
