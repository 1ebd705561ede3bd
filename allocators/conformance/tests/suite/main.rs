//! The suite itself: glibc passes it, and every check notices a fault.

mod background;
mod faults;
mod group;
mod libraries;
mod linked;
mod misuse;
mod settings;
mod statistics;
