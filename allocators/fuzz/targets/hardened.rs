//! Runs the programs of `operations` on the hardened variant. It looks whether blocks are as it
//! left them when it hands them out again, so that no other variant may serve in its process: they
//! share their free blocks.

#![no_main]

mod calls;

use heapdrome_conformance::{Subject, execute};
use heapdrome_elfmalloc::Hardened;
use heapdrome_malloc_abi::MallocAbi;
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: {
    Hardened::start();
}, |input: &[u8]| {
    // The inputs of `operations` begin with two bytes more, and may be tried here as they are.
    let Some((_, bytes)) = input.split_first_chunk::<2>() else {
        return;
    };
    let program = calls::program(bytes);
    if let Err(what) = execute(&Subject::of::<Hardened>(), &program) {
        panic!("{what}\n{program}");
    }
});
