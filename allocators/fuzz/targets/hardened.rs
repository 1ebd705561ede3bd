//! Runs the programs of `operations` on the hardened variant. It checks that blocks are unchanged
//! when it hands them out again. Variants share their free blocks, so no other one may serve in
//! this process.

#![no_main]

mod calls;

use heapdrome_conformance::{Subject, execute};
use heapdrome_elfmalloc::Hardened;
use heapdrome_malloc_abi::MallocAbi;
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: {
    Hardened::start();
}, |input: &[u8]| {
    // Inputs of `operations` begin with two more bytes, and may be used here unchanged.
    let Some((_, bytes)) = input.split_first_chunk::<2>() else {
        return;
    };
    let program = calls::program(bytes);
    if let Err(what) = execute(&Subject::of::<Hardened>(), &program) {
        panic!("{what}\n{program}");
    }
});
