//! The witness on small programs that are compiled for each test.

mod bench;
mod counts;
mod ending;
mod following;
mod requests;
mod tree;
mod uncounted;
