//! What is said of a profile, and the files that are made of it.

mod decoder;
mod files;
mod pprof;
mod sentences;
mod traces;
