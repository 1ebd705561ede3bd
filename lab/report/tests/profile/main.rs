//! Tests of the sentences on a profile, and of the files that are made from it.

mod decoder;
mod files;
mod pprof;
mod sentences;
mod traces;
