//! The suite itself: glibc passes it, and every check notices a fault.

mod faults;
mod libraries;
mod misuse;
mod statistics;
