//! Converts bytes to a program of allocator calls and runs it against the shadow heap of the
//! conformance suite: overlap, alignment, contents, zeroing, usable size, realloc.
//!
//! The first byte selects the allocator: one of the allocators over the real system, or elfmalloc
//! over simulated pages. The latter gets a new back-end for each input, often has little memory,
//! and checks all invariants at the end. The target `hardened` runs the hardened variant.

#![no_main]

mod calls;
#[path = "../../elfmalloc/tests/simulated/mod.rs"]
mod simulated;

use heapdrome_bumpmalloc::Bumpmalloc;
use heapdrome_conformance::{Subject, execute};
use heapdrome_elfmalloc::heap::front_end::Magazines;
use heapdrome_elfmalloc::heap::local_cache::LocalCache;
use heapdrome_elfmalloc::{Elfmalloc, ElfmallocL};
use heapdrome_malloc_abi::MallocAbi;
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: {
    Elfmalloc::start();
}, |input: &[u8]| {
    let Some((&[served_by, memory], bytes)) = input.split_first_chunk() else {
        return;
    };
    let program = calls::program(bytes);
    let limit = (usize::from(memory) + 2) << 19;
    let decay = if served_by & 0x80 == 0 { 0 } else { u64::MAX };
    let outcome = match served_by % 5 {
        0 => execute(&Subject::of::<Elfmalloc>(), &program),
        1 => execute(&Subject::of::<ElfmallocL>(), &program),
        2 => execute(&Subject::of::<Bumpmalloc>(), &program),
        3 => simulated::run::<Magazines>(&program, limit, decay).map(drop),
        _ => simulated::run::<LocalCache>(&program, limit, decay).map(drop),
    };
    if let Err(what) = outcome {
        panic!("{what}\n{program}");
    }
});
