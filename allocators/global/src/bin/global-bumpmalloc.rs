//! A program whose global allocator is bumpmalloc.

#![forbid(unsafe_code)]

use std::process::ExitCode;

heapdrome_bumpmalloc::global_allocator!(heapdrome_bumpmalloc::Bumpmalloc);

fn main() -> ExitCode {
    heapdrome_global::main::<heapdrome_bumpmalloc::Bumpmalloc>()
}
