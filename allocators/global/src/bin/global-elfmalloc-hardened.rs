//! A program whose global allocator is elfmalloc-hardened.

#![forbid(unsafe_code)]

use std::process::ExitCode;

heapdrome_elfmalloc::global_allocator!(heapdrome_elfmalloc::Hardened);

fn main() -> ExitCode {
    heapdrome_global::main::<heapdrome_elfmalloc::Hardened>()
}
