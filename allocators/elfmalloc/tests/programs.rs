//! Generated programs over simulated pages: with plenty of memory, and with so little that much is
//! refused.

mod simulated;

use std::sync::LazyLock;

use heapdrome_conformance::Program;
use heapdrome_elfmalloc::front_end::{FrontEnd, Magazines};
use heapdrome_elfmalloc::local_cache::LocalCache;

const STEPS: usize = if cfg!(miri) { 100 } else { 5_000 };
/// Nothing is refused.
const PLENTY: usize = 1 << 30;
/// Less than the programs ask for.
const LITTLE: usize = if cfg!(miri) { 1 << 20 } else { 6 << 20 };

/// Programs on one thread and on several. Miri takes as long to make one as to run it.
static PROGRAMS: LazyLock<[Program; 2]> = LazyLock::new(|| {
    [(21, 1), (22, 3)].map(|(seed, threads)| Program::generate(seed, threads, STEPS))
});

/// Runs programs that must find nothing wrong. Returns how often they were refused memory.
fn must_pass<F: FrontEnd>(limit: usize) -> usize {
    let mut refused = 0;
    for (program, decays) in PROGRAMS.iter().zip([[0, u64::MAX], [u64::MAX, 0]]) {
        for &decay in &decays[..if cfg!(miri) { 1 } else { 2 }] {
            match simulated::run::<F>(program, limit, decay) {
                Ok(count) => refused += count,
                Err(what) => panic!("{} threads: {what}", program.threads()),
            }
        }
    }
    refused
}

#[test]
fn with_plenty_of_memory() {
    assert_eq!(must_pass::<Magazines>(PLENTY), 0);
}

#[test]
fn with_plenty_of_memory_and_the_thread_local_cache() {
    assert_eq!(must_pass::<LocalCache>(PLENTY), 0);
}

#[test]
fn with_little_memory() {
    assert_ne!(must_pass::<Magazines>(LITTLE), 0);
}

#[test]
fn with_little_memory_and_the_thread_local_cache() {
    assert_ne!(must_pass::<LocalCache>(LITTLE), 0);
}
