//! The witness on small programs that are compiled for each test.

mod bench;
mod counts;
mod end;
mod blocks;
mod requests;
mod tree;
mod uncounted;
