//! A program whose global allocator is elfmalloc-l.

#![forbid(unsafe_code)]

use std::process::ExitCode;

heapdrome_elfmalloc::global_allocator!(heapdrome_elfmalloc::ElfmallocL);

fn main() -> ExitCode {
    heapdrome_global::main::<heapdrome_elfmalloc::ElfmallocL>()
}
