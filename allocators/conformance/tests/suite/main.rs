//! Tests of the suite itself: glibc passes it, and every check detects a fault. Also tests of
//! heapdrome's preloadable libraries.

mod background;
mod faults;
mod group;
mod libraries;
mod linked;
mod misuse;
mod settings;
mod small;
mod stack;
mod statistics;
