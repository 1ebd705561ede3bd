//! Runs the conformance programs on the hardened variant, through its trait. The process itself
//! uses another allocator.

use heapdrome_conformance::{Program, Subject, execute};
use heapdrome_elfmalloc::Hardened;

#[test]
fn generated_programs_find_nothing() {
    let subject = Subject::of::<Hardened>();
    for (seed, threads) in [(1, 1), (2, 2), (3, 4), (4, 8)] {
        let program = Program::generate(seed, threads, 30_000);
        assert_eq!(execute(&subject, &program), Ok(()), "seed {seed}");
    }
}
