//! Bytes become a program of allocator calls, which runs against the shadow heap of the conformance
//! suite: overlap, alignment, contents, zeroing, usable size, realloc.
//!
//! The first byte says what serves the calls: one of the allocators over the real system, as in a
//! process, or elfmalloc over simulated pages, begun anew for each input, checked as a whole
//! afterwards, and often short of memory. Each further five bytes are a call.

#![no_main]

#[path = "../../elfmalloc/tests/simulated/mod.rs"]
mod simulated;

use heapdrome_bumpmalloc::Bumpmalloc;
use heapdrome_conformance::{Operation, Program, Step, Subject, execute};
use heapdrome_elfmalloc::front_end::Magazines;
use heapdrome_elfmalloc::local_cache::LocalCache;
use heapdrome_elfmalloc::{Elfmalloc, ElfmallocL, Hardened};
use heapdrome_malloc_abi::MallocAbi;
use libfuzzer_sys::fuzz_target;

const THREADS: u8 = 4;
const SLOTS: u8 = 64;

fuzz_target!(init: {
    // The states of blocks, which the hardened variant wants, must be kept from the first block on.
    Hardened::start();
}, |input: &[u8]| {
    let Some((&[served_by, memory], calls)) = input.split_first_chunk() else {
        return;
    };
    let program = Program(calls.as_chunks().0.iter().map(step).collect());
    let limit = (usize::from(memory) + 2) << 19;
    let decay = if served_by & 0x80 == 0 { 0 } else { u64::MAX };
    let outcome = match served_by % 6 {
        0 => execute(&Subject::of::<Elfmalloc>(), &program),
        1 => execute(&Subject::of::<ElfmallocL>(), &program),
        2 => execute(&Subject::of::<Hardened>(), &program),
        3 => execute(&Subject::of::<Bumpmalloc>(), &program),
        4 => simulated::run::<Magazines>(&program, limit, decay),
        _ => simulated::run::<LocalCache>(&program, limit, decay),
    };
    if let Err(what) = outcome {
        panic!("{what}\n{program}");
    }
});

fn step(&[what, who, mantissa, exponent, alignment]: &[u8; 5]) -> Step {
    let operation = match what % 16 {
        0..4 => Operation::Allocate,
        4 | 5 => Operation::Zeroed,
        6 => Operation::Aligned,
        7..10 => Operation::Reallocate,
        10..13 => Operation::Free,
        13 => Operation::Give,
        14 => Operation::Take,
        // Seldom: it gives back what later calls could find.
        _ if alignment < 16 => Operation::Trim,
        _ => Operation::Free,
    };
    // Most inputs have one thread, so that what they show can be shown again.
    let thread = if what & 0x80 == 0 {
        0
    } else {
        who / SLOTS % THREADS
    };
    Step {
        thread: thread.into(),
        operation,
        slot: (who % SLOTS).into(),
        size: if operation == Operation::Give {
            (mantissa % THREADS).into()
        } else {
            size(mantissa, exponent)
        },
        alignment: if operation == Operation::Aligned {
            8 << (alignment % 16)
        } else {
            1
        },
    }
}

/// Up to 2 MiB, every boundary of a size class and its neighbours among them.
fn size(mantissa: u8, exponent: u8) -> usize {
    let shifted = usize::from(mantissa) << (exponent % 14);
    (shifted + usize::from(exponent >> 6)).saturating_sub(1)
}
