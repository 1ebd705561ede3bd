//! A program whose global allocator is elfmalloc.

#![forbid(unsafe_code)]

use std::process::ExitCode;

heapdrome_elfmalloc::global_allocator!(heapdrome_elfmalloc::Elfmalloc);

fn main() -> ExitCode {
    heapdrome_global::main::<heapdrome_elfmalloc::Elfmalloc>()
}
