//! Runs the conformance programs on elfmalloc, through its trait. The process itself uses another
//! allocator.

use heapdrome_conformance::{Program, Subject, execute};
use heapdrome_elfmalloc::{Elfmalloc, ElfmallocL};

#[test]
fn generated_programs_find_nothing() {
    must_pass(&Subject::of::<Elfmalloc>());
}

// Both front-ends run in this process, with the same back-end and the same thread heaps.
#[test]
fn generated_programs_find_nothing_with_the_thread_local_cache() {
    must_pass(&Subject::of::<ElfmallocL>());
}

fn must_pass(subject: &Subject) {
    for (seed, threads) in [(1, 1), (2, 2), (3, 4), (4, 8)] {
        let program = Program::generate(seed, threads, 30_000);
        assert_eq!(execute(subject, &program), Ok(()), "seed {seed}");
    }
}
