//! bumpmalloc as a library to preload, to link or to load.

#![cfg_attr(panic = "abort", no_std)]

heapdrome_malloc_abi::export!(heapdrome_bumpmalloc::Bumpmalloc);
heapdrome_malloc_abi::panic_handler!();
