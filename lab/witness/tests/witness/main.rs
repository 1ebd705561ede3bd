//! Tests of the witness on small programs, most of which the tests compile themselves.

mod bench;
mod blocks;
mod counts;
mod end;
mod forks;
mod requests;
mod tree;
mod uncounted;
