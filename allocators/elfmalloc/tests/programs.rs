//! Generated programs over simulated pages, with plenty of memory and with so little that many
//! requests fail.

mod simulated;

use std::sync::LazyLock;

use heapdrome_conformance::{Operation, Program, Step};
use heapdrome_elfmalloc::heap::front_end::{FrontEnd, Magazines};
use heapdrome_elfmalloc::heap::local_cache::LocalCache;
use simulated::Counts;

/// Environment variable that sets the number of steps of the programs.
const VARIABLE: &str = "HEAPDROME_STEPS";
/// Default number of steps.
const STEPS: usize = if cfg!(miri) { 150 } else { 5_000 };
/// Number of bytes with which no request fails.
const PLENTY: usize = 1 << 30;
/// Number of bytes with which some requests fail, but the programs can continue.
const LITTLE: usize = if cfg!(miri) { 2 << 20 } else { 6 << 20 };

/// Programs with one thread and with several. Generated only once, because that is slow under Miri.
static PROGRAMS: LazyLock<[Program; 2]> = LazyLock::new(|| {
    let steps = std::env::var(VARIABLE).map_or(STEPS, |steps| {
        steps.parse().expect("HEAPDROME_STEPS is a number")
    });
    [(21, 1), (22, 3)].map(|(seed, threads)| {
        let mut program = Program::generate(seed, threads, steps);
        // Generated trims are rare, so add one for each thread. Each trim also moves its thread to
        // another processor.
        for thread in 0..threads {
            program.0.insert(steps / 2, Step { thread, ..TRIM });
        }
        let mut operations = Vec::new();
        for step in &program.0 {
            if !operations.contains(&step.operation) {
                operations.push(step.operation);
            }
        }
        assert_eq!(operations.len(), 8, "all of them: {operations:?}");
        program
    })
});

/// Step that gives back as much memory as possible.
const TRIM: Step = Step {
    thread: 0,
    operation: Operation::Trim,
    slot: 0,
    size: 0,
    alignment: 1,
};

/// Runs all programs and asserts that they find no error. Returns the sum of their counts.
fn must_pass<F: FrontEnd>(limit: usize) -> Counts {
    let mut sum = Counts::default();
    for (program, decays) in PROGRAMS.iter().zip([[u64::MAX, 0], [0, u64::MAX]]) {
        for &decay in &decays[..if cfg!(miri) { 1 } else { 2 }] {
            let counts = match simulated::run::<F>(program, limit, decay) {
                Ok(counts) => counts,
                Err(what) => panic!("{} threads: {what}", program.threads()),
            };
            sum.refused += counts.refused;
            sum.remote_frees += counts.remote_frees;
            sum.purges += counts.purges;
        }
    }
    assert!(sum.remote_frees != 0 && sum.purges != 0, "{sum:?}");
    sum
}

#[test]
fn with_plenty_of_memory() {
    assert_eq!(must_pass::<Magazines>(PLENTY).refused, 0);
}

#[test]
fn with_plenty_of_memory_and_the_thread_local_cache() {
    assert_eq!(must_pass::<LocalCache>(PLENTY).refused, 0);
}

#[test]
fn with_little_memory() {
    assert_ne!(must_pass::<Magazines>(LITTLE).refused, 0);
}

#[test]
fn with_little_memory_and_the_thread_local_cache() {
    assert_ne!(must_pass::<LocalCache>(LITTLE).refused, 0);
}
