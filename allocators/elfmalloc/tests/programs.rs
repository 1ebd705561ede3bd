//! Generated programs over simulated pages: with plenty of memory, and with so little that much is
//! refused.

mod simulated;

use heapdrome_conformance::Program;
use heapdrome_elfmalloc::front_end::{FrontEnd, Magazines};
use heapdrome_elfmalloc::local_cache::LocalCache;

const STEPS: usize = if cfg!(miri) { 100 } else { 5_000 };

fn must_pass<F: FrontEnd>(limit: usize) {
    for (seed, threads) in [(21, 1), (22, 3)] {
        let program = Program::generate(seed, threads, STEPS);
        for decay in [0, u64::MAX] {
            assert_eq!(
                simulated::run::<F>(&program, limit, decay),
                Ok(()),
                "seed {seed}"
            );
        }
    }
}

#[test]
fn with_plenty_of_memory() {
    must_pass::<Magazines>(1 << 30);
}

#[test]
fn with_plenty_of_memory_and_the_thread_local_cache() {
    must_pass::<LocalCache>(1 << 30);
}

#[test]
fn with_little_memory() {
    must_pass::<Magazines>(6 << 20);
}

#[test]
fn with_little_memory_and_the_thread_local_cache() {
    must_pass::<LocalCache>(6 << 20);
}
