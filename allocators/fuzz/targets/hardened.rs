//! Runs the programs of `operations` on the hardened variant, which checks freed blocks when it
//! hands them out again. All variants share free blocks, so no other variant may serve this
//! process.

#![no_main]

mod calls;

use heapdrome_conformance::{Subject, execute};
use heapdrome_elfmalloc::Hardened;
use heapdrome_malloc_abi::MallocAbi;
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: {
    Hardened::start();
}, |input: &[u8]| {
    // Skip the two leading bytes of inputs for `operations`, so that the same inputs can be used.
    let Some((_, bytes)) = input.split_first_chunk::<2>() else {
        return;
    };
    let program = calls::program(bytes);
    if let Err(what) = execute(&Subject::of::<Hardened>(), &program) {
        panic!("{what}\n{program}");
    }
});
